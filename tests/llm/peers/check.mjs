// SPDX-License-Identifier: Apache-2.0
// Checks that print one line each. The last line of a script is finish().
import assert from 'node:assert/strict';

let failed = 0;
let done = 0;

export async function check(name, body) {
  try {
    await body();
    done += 1;
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}: ${error?.stack ?? error}`);
  }
}

/** The error that a promise ends in; none is a failure. */
export async function errorOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return assert.fail('an error was expected');
}

export function finish() {
  console.log(`${done} ok, ${failed} failed`);
  process.exit(failed === 0 && done > 0 ? 0 : 1);
}
