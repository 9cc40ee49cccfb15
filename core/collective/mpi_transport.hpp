// SPDX-License-Identifier: Apache-2.0
// A transport over MPI, whose library is opened at run time.
#pragma once

#include <compute/compute.h>

#include <functional>

namespace compute {

// A transport between all processes of the MPI program. Initializes MPI if the program has not done so, and then ends
// it at exit(). `before_end` is called before MPI ends. Throws NOT_FOUND, UNSUPPORTED or PEER_FAILED.
compute_transport mpi_transport(std::function<void()> before_end);

}  // namespace compute
