/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COMPUTE_OPS_H_
#define COMPUTE_OPS_H_
#endif
