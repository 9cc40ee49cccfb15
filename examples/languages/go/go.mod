// SPDX-License-Identifier: Apache-2.0
module example

go 1.18

require compute v0.0.0

replace compute => ../../../bindings/go
