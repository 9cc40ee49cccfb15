// SPDX-License-Identifier: Apache-2.0
// Owns the precompiled header; the program is never run.
int main() { return 0; }
