// SPDX-License-Identifier: Apache-2.0
// The commands of `compute`. Each prints to stdout and returns the exit status.
#pragma once

#include <string>

int show_devices(bool json, bool verbose);
int show_which(const std::string& selector, bool json);
int show_info(const std::string& device);
int show_ops(const std::string& device, bool json);
int show_doctor(bool environment);
int show_config();
int show_version();
int show_cache();
int clear_cache();
