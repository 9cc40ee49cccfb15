// SPDX-License-Identifier: Apache-2.0
// LAPACK and BLAS of OpenBLAS, which is opened at the first op that needs it, and stays open. The routines that the
// plugin calls are declared in this file: Fortran passes every argument by address, and the length of each character
// argument behind the others.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "plugins/common/table/emit.hpp"
#include "plugins/cpu/threads/openmp.hpp"

namespace compute::cpu {

using LapackInt = int32_t;

template <class T>
struct RealPart {
  using Type = T;
};
template <class T>
struct RealPart<std::complex<T>> {
  using Type = T;
};
template <class T>
using Real = typename RealPart<T>::Type;
template <class T>
inline constexpr bool kIsComplex = !std::is_same_v<T, Real<T>>;

/// The routines for one element type, by their names without the letter of the type. Matrices are column-major.
template <class T>
struct Lapack {
  using N = const LapackInt*;
  using Text = const char*;

  void (*gemm)(Text transa, Text transb, N m, N n, N k, const T* alpha, const T* a, N lda, const T* b, N ldb,
               const T* beta, T* c, N ldc, size_t, size_t);
  void (*trsm)(Text side, Text uplo, Text transa, Text diag, N m, N n, const T* alpha, const T* a, N lda, T* b, N ldb,
               size_t, size_t, size_t, size_t);
  void (*potrf)(Text uplo, N n, T* a, N lda, LapackInt* info, size_t);
  void (*getrf)(N m, N n, T* a, N lda, LapackInt* pivots, LapackInt* info);
  void (*getrs)(Text trans, N n, N count, const T* a, N lda, const LapackInt* pivots, T* b, N ldb, LapackInt* info,
                size_t);
  void (*getri)(N n, T* a, N lda, const LapackInt* pivots, T* work, N lwork, LapackInt* info);
  void (*geqrf)(N m, N n, T* a, N lda, T* tau, T* work, N lwork, LapackInt* info);
  void (*geqrt3)(N m, N n, T* a, N lda, T* t, N ldt, LapackInt* info);
  void (*larft)(Text direct, Text storev, N n, N k, const T* v, N ldv, const T* tau, T* t, N ldt, size_t, size_t);
  /// orgqr or ungqr.
  void (*orgqr)(N m, N n, N k, T* a, N lda, const T* tau, T* work, N lwork, LapackInt* info);

  // These have one more array of real numbers for complex matrices.
  using Syevd =
      std::conditional_t<kIsComplex<T>,
                         void (*)(Text jobz, Text uplo, N n, T* a, N lda, Real<T>* w, T* work, N lwork, Real<T>* rwork,
                                  N lrwork, LapackInt* iwork, N liwork, LapackInt* info, size_t, size_t),
                         void (*)(Text jobz, Text uplo, N n, T* a, N lda, T* w, T* work, N lwork, LapackInt* iwork,
                                  N liwork, LapackInt* info, size_t, size_t)>;
  Syevd syevd;  ///< syevd or heevd
  using Geev = std::conditional_t<kIsComplex<T>,
                                  void (*)(Text jobvl, Text jobvr, N n, T* a, N lda, T* w, T* vl, N ldvl, T* vr, N ldvr,
                                           T* work, N lwork, Real<T>* rwork, LapackInt* info, size_t, size_t),
                                  void (*)(Text jobvl, Text jobvr, N n, T* a, N lda, T* wr, T* wi, T* vl, N ldvl, T* vr,
                                           N ldvr, T* work, N lwork, LapackInt* info, size_t, size_t)>;
  Geev geev;
  using Gesdd =
      std::conditional_t<kIsComplex<T>,
                         void (*)(Text jobz, N m, N n, T* a, N lda, Real<T>* s, T* u, N ldu, T* vt, N ldvt, T* work,
                                  N lwork, Real<T>* rwork, LapackInt* iwork, LapackInt* info, size_t),
                         void (*)(Text jobz, N m, N n, T* a, N lda, T* s, T* u, N ldu, T* vt, N ldvt, T* work, N lwork,
                                  LapackInt* iwork, LapackInt* info, size_t)>;
  Gesdd gesdd;
};

/// The routines that are called for real matrices alone.
template <class T>
struct RealLapack {
  using N = const LapackInt*;
  using Text = const char*;

  T (*dot)(N n, const T* x, N incx, const T* y, N incy);
  void (*axpy)(N n, const T* alpha, const T* x, N incx, T* y, N incy);
  void (*scal)(N n, const T* alpha, T* x, N incx);
  void (*gemv)(Text trans, N m, N n, const T* alpha, const T* a, N lda, const T* x, N incx, const T* beta, T* y, N incy,
               size_t);
  void (*symv)(Text uplo, N n, const T* alpha, const T* a, N lda, const T* x, N incx, const T* beta, T* y, N incy,
               size_t);
  void (*syr2k)(Text uplo, Text trans, N n, N k, const T* alpha, const T* a, N lda, const T* b, N ldb, const T* beta,
                T* c, N ldc, size_t, size_t);
  void (*larfg)(N n, T* alpha, T* x, N incx, T* tau);
  void (*stedc)(Text compz, N n, T* d, T* e, T* z, N ldz, T* work, N lwork, LapackInt* iwork, N liwork, LapackInt* info,
                size_t);
  void (*sterf)(N n, T* d, T* e, LapackInt* info);
  // The parts of stedc.
  void (*laed2)(LapackInt* k, N n, N n1, T* d, T* q, N ldq, LapackInt* indxq, T* rho, T* z, T* dlamda, T* w, T* q2,
                LapackInt* indx, LapackInt* indxc, LapackInt* indxp, LapackInt* coltyp, LapackInt* info);
  void (*laed4)(N n, N i, const T* d, const T* z, T* delta, const T* rho, T* dlam, LapackInt* info);
  void (*lamrg)(N n1, N n2, const T* a, N strd1, N strd2, LapackInt* index);
  void (*bdsdc)(Text uplo, Text compq, N n, T* d, T* e, T* u, N ldu, T* vt, N ldvt, T* q, LapackInt* iq, T* work,
                LapackInt* iwork, LapackInt* info, size_t, size_t);
};

struct LapackLibrary {
  Lapack<float> s;
  Lapack<double> d;
  Lapack<std::complex<float>> c;
  Lapack<std::complex<double>> z;
  RealLapack<float> real_s;
  RealLapack<double> real_d;
  Openmp openmp;

  template <class T>
  const RealLapack<T>& real() const {
    if constexpr (std::is_same_v<T, float>) {
      return real_s;
    } else {
      return real_d;
    }
  }

  template <class T>
  const Lapack<T>& of() const {
    if constexpr (std::is_same_v<T, float>) {
      return s;
    } else if constexpr (std::is_same_v<T, double>) {
      return d;
    } else if constexpr (std::is_same_v<T, std::complex<float>>) {
      return c;
    } else {
      return z;
    }
  }
};

/// Opens the library at the first call. NULL if it cannot be used; *out_reason then says why, and what to install.
const LapackLibrary* lapack(std::string* out_reason = nullptr);

/// What the load report says of it.
common::Requirement report_lapack();

}  // namespace compute::cpu
