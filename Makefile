# SPDX-License-Identifier: Apache-2.0
# The two commands of the README. Everything else is CMake: see CMakePresets.json.
.PHONY: demo test build clean

build:
	@scripts/install_dependencies.sh
	@cmake --preset release > /dev/null
	@cmake --build --preset release --target kernelpro_all

demo: build
	build/release/bin/kernelpro optimize examples/tasks/row_softmax

test:
	@scripts/install_dependencies.sh
	@cmake --preset release > /dev/null
	@cmake --build --preset release
	@ctest --preset release

clean:
	rm -rf build
