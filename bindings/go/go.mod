// SPDX-License-Identifier: Apache-2.0
module compute

go 1.18
