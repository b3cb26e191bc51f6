# SPDX-License-Identifier: Apache-2.0
kp_fuzzer(NAME sass_listing_fuzzer DEPS kp_sass)
kp_fuzzer(NAME cubin_fuzzer DEPS kp_sass)
