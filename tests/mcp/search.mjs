// SPDX-License-Identifier: Apache-2.0
// A search through an official client: node search.mjs TASK COMMAND [ARGUMENT...]. TASK is the
// example transpose. A server without the tool start_run is left alone.
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve} from 'node:path';
import {Client} from '@modelcontextprotocol/sdk/client/index.js';
import {StdioClientTransport} from '@modelcontextprotocol/sdk/client/stdio.js';

const [task, program, ...args] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'kernelpro-search-'));
const run = 'a run';  // Not every name is one word.

function expect(condition, what) {
  if (!condition) {
    throw new Error(what);
  }
}

/** Right, and slow in its first call, so that there is time to cancel. */
function slow(source) {
  return '#include <unistd.h>\n' + source.replace(
      '  const int rows', '  static int calls = 0;\n  if (calls++ == 0) usleep(8000000);\n  const int rows');
}

async function search(client) {
  const call = async (name, input, options) => {
    const result = await client.callTool({name, arguments: input}, undefined,
                                         {timeout: 300000, ...options});
    expect(!result.isError, `${name}: ${result.content[0].text}`);
    expect(result.content[0].text.length > 0, `${name} has no text`);
    return result.structuredContent;
  };
  const started = await call('start_run', {task, device: 'emulator', seed: 3, run});
  expect(started.verdict === 'ok' && started.run === run, JSON.stringify(started));
  const next = await call('next_parent', {run});
  expect(next.parent.node === 1 && next.repair === false, 'another parent');
  const narrow = next.source.replace('kBlockX = 32', 'kBlockX = 16');
  expect(narrow !== next.source, 'the example changed');
  const submit = {run, parent: 1};
  const judged = await call('submit_kernel',
                            {...submit, source: narrow, action: 'narrow', by: 'search.mjs'});
  expect(judged.verdict === 'ok' && judged.origin === 'search.mjs', JSON.stringify(judged));

  const seen = [];
  const wide = next.source.replace('kBlockY = 8', 'kBlockY = 4');
  await call('submit_kernel', {...submit, source: wide, action: 'flat', defer: true});
  const evaluated = await call('evaluate', {run}, {onprogress: (p) => seen.push(p)});
  expect(evaluated.nodes[2].verdict === 'ok', JSON.stringify(evaluated.nodes[2]));
  expect(seen.length > 0 && seen.every((p) => p.total === 1), JSON.stringify(seen));

  const abort = new AbortController();
  const waiting = call('submit_kernel', {...submit, source: slow(next.source), action: 'slow'},
                       {signal: abort.signal});
  setTimeout(() => abort.abort('enough'), 3000);
  expect(await waiting.then(() => false, () => true), 'the cancelled call was answered');
  const status = await call('status', {run});
  expect(status.nodes.length === 4, `${status.nodes.length} nodes`);
  expect(status.nodes[3].verdict === null, 'the cancelled node has a verdict');
  const report = await call('report', {run});
  expect(report !== undefined, 'a report without structured content');
  const best = readFileSync(join(folder, run, 'best.cu'), 'utf8');
  expect(best.includes('kernelpro_run'), 'best.cu holds no kernel');
}

const transport = new StdioClientTransport(
    {command: resolve(program), args, cwd: folder, stderr: 'inherit', env: process.env});
const client = new Client({name: 'search', version: '1'});
let failure;
try {
  await client.connect(transport);
  const {tools} = await client.listTools();
  if (tools.some((tool) => tool.name === 'start_run')) {
    await search(client);
    console.log('search: passed');
  } else {
    console.log('search: left out, there is no start_run');
  }
} catch (error) {
  failure = error;
}
await client.close();
rmSync(folder, {recursive: true, force: true});
if (failure) {
  console.log(`search: FAILED ${failure}`);
}
process.exit(failure ? 1 : 0);
