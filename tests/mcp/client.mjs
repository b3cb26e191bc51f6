// SPDX-License-Identifier: Apache-2.0
// Official clients against a server: node client.mjs COMMAND [ARGUMENT...]. Rows that need a tool of
// mcp_probe_server are left out when the server has no such tool.
import {Client as OldClient} from '@modelcontextprotocol/sdk/client/index.js';
import {StdioClientTransport as OldTransport} from '@modelcontextprotocol/sdk/client/stdio.js';
import {Client as NewClient} from '@modelcontextprotocol/client';
import {StdioClientTransport as NewTransport} from '@modelcontextprotocol/client/stdio';

const [command, ...args] = process.argv.slice(2);
const self = {name: 'conformance', version: '1'};

const clients = [
  {
    label: 'sdk 1.32.2',
    revision: '2025-11-25',
    client: () => new OldClient(self),
    transport: (options) => new OldTransport(options),
    call: (client, params, options) => client.callTool(params, undefined, options),
    revisionOf: (client, transport) => transport.sawRevision,
    unknownResource: -32002,
    pings: true,
  },
  {
    label: 'client 2.4.0, handshake',
    revision: '2025-11-25',
    client: () => new NewClient(self, {versionNegotiation: {mode: 'legacy'}}),
    transport: (options) => new NewTransport(options),
    call: (client, params, options) => client.callTool(params, options),
    revisionOf: (client) => client.getNegotiatedProtocolVersion(),
    unknownResource: -32602,  // sent as -32002; this client shows every revision's code as the newest
    pings: true,
  },
  {
    label: 'client 2.4.0, stateless',
    revision: '2026-07-28',
    client: () => new NewClient(self, {versionNegotiation: {mode: {pin: '2026-07-28'}}}),
    transport: (options) => new NewTransport(options),
    call: (client, params, options) => client.callTool(params, options),
    revisionOf: (client) => client.getNegotiatedProtocolVersion(),
    unknownResource: -32602,
    pings: false,
  },
  {
    label: 'client 2.4.0, automatic',
    revision: '2026-07-28',
    client: () => new NewClient(self, {versionNegotiation: {mode: 'auto'}}),
    transport: (options) => new NewTransport(options),
    call: (client, params, options) => client.callTool(params, options),
    revisionOf: (client) => client.getNegotiatedProtocolVersion(),
    unknownResource: -32602,
    pings: false,
  },
];

function expect(condition, what) {
  if (!condition) {
    throw new Error(what);
  }
}

/** The error's code, or a failure when nothing is thrown. */
async function codeOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error.code;
  }
  throw new Error('no error came');
}

class Left extends Error {}

/** Rows: [name, what is checked, given the session]. The text that a row returns is shown. */
const rows = [
  ['handshake', async (s) => {
    expect(s.revision === s.kind.revision, `revision ${s.revision}`);
    expect(s.client.getServerCapabilities().tools, 'no tools are offered');
    const server = s.client.getServerVersion();
    expect(server.name && server.version, 'the server has no name');
    return `${s.revision}, ${server.name} ${server.version}`;
  }],
  ['ping', async (s) => {
    if (!s.kind.pings) {
      throw new Left('not in this revision');
    }
    await s.client.ping();
  }],
  ['tools/list', async (s) => {
    expect(s.tools.size > 0, 'there is no tool');
    for (const tool of s.tools.values()) {
      expect(tool.inputSchema.type === 'object', `${tool.name} has no input schema`);
      expect(typeof tool.annotations?.readOnlyHint === 'boolean', `${tool.name}: no annotation`);
    }
    return [...s.tools.keys()].join(' ');
  }],
  ['text result', async (s) => {
    const result = await s.call('echo', {text: 'grüße\n\u2028"\\'});
    expect(result.content[0].text === 'grüße\n\u2028"\\', 'the text came back changed');
    expect(!result.isError, 'isError');
  }],
  ['structured result', async (s) => {
    // The client holds it against the output schema.
    const result = await s.call('structured', {values: [1, 2, 3]});
    expect(result.structuredContent.sum === 6, JSON.stringify(result));
  }],
  ['failed tool', async (s) => {
    const result = await s.call('fail', {});
    expect(result.isError === true && result.content[0].text.length > 0, JSON.stringify(result));
    return result.content[0].text;
  }],
  ['wrong arguments', async (s) => {
    const tool = [...s.tools.values()].find((t) => t.inputSchema.required?.length > 0);
    if (!tool) {
      throw new Left('no tool needs an argument');
    }
    const result = await s.call(tool.name, {});
    expect(result.isError === true, 'taken');
    return result.content[0].text.split('\n').pop();
  }],
  ['unknown tool', async (s) => {
    const code = await codeOf(s.kind.call(s.client, {name: 'no_such_tool', arguments: {}}));
    expect(code === -32602, `code ${code}`);
  }],
  ['progress', async (s) => {
    const seen = [];
    const result = await s.call('slow', {steps: 4}, {onprogress: (p) => seen.push(p)});
    expect(!result.isError, JSON.stringify(result));
    // Both clients lose notices that they read together with the answer: the last may be missing.
    expect(seen.length > 0 && seen.every((p, i) => p.progress === i + 1), JSON.stringify(seen));
    expect(seen.every((p) => p.total === 4 && p.message.length > 0), JSON.stringify(seen));
    return `${seen.length} of 4 notices`;
  }],
  ['cancellation', async (s) => {
    const before = (await s.call('structured', {values: []})).structuredContent.cancelled;
    const abort = new AbortController();
    const running = s.call('slow', {steps: 1000000}, {
      signal: abort.signal,
      onprogress: () => abort.abort('enough'),
      timeout: 60000,
    });
    await codeOf(running);
    // One tool runs at a time: this answer shows that the other one ended.
    const after = (await s.call('structured', {values: []})).structuredContent.cancelled;
    expect(after === before + 1, `the tool was stopped ${after - before} times`);
  }],
  ['calls at once', async (s) => {
    const texts = Array.from({length: 50}, (_, i) => `text ${i}`);
    const results = await Promise.all(texts.map((text) => s.call('echo', {text})));
    expect(results.every((r, i) => r.content[0].text === texts[i]), 'mixed up');
    return `${texts.length}`;
  }],
  ['resources', async (s) => {
    if (!s.client.getServerCapabilities().resources) {
      throw new Left('not offered');
    }
    const {resources} = await s.client.listResources();
    if (resources.length === 0) {
      throw new Left('there is none now');
    }
    for (const resource of resources.slice(0, 5)) {
      const {contents} = await s.client.readResource({uri: resource.uri});
      expect(contents[0].uri === resource.uri, 'another resource came');
      expect(contents[0].mimeType === resource.mimeType, `mimeType ${contents[0].mimeType}`);
      expect(typeof contents[0].text === 'string', 'no text');
    }
    return `${resources.length}`;
  }],
  ['resource templates', async (s) => {
    if (!s.client.getServerCapabilities().resources) {
      throw new Left('not offered');
    }
    const {resourceTemplates} = await s.client.listResourceTemplates();
    expect(resourceTemplates.every((t) => t.uriTemplate.includes('{')), 'no template');
    return resourceTemplates.map((t) => t.uriTemplate).join(' ');
  }],
  ['unknown resource', async (s) => {
    if (!s.client.getServerCapabilities().resources) {
      throw new Left('not offered');
    }
    const code = await codeOf(s.client.readResource({uri: 'kernelpro:no/such/thing'}));
    expect(code === s.kind.unknownResource, `code ${code}`);
  }],
  ['nothing but protocol', async (s) => {
    const errors = s.errors.filter((error) => !String(error).includes('for an unknown token'));
    expect(errors.length === 0, String(errors[0]));
  }],
];

async function open(kind) {
  const transport = kind.transport({command, args, stderr: 'ignore'});
  transport.setProtocolVersion = (version) => { transport.sawRevision = version; };
  const client = kind.client();
  const errors = [];
  client.onerror = (error) => errors.push(error);
  await client.connect(transport, {timeout: 60000});
  const tools = new Map();
  let cursor;
  do {
    const page = await client.listTools(cursor ? {cursor} : undefined);
    page.tools.forEach((tool) => tools.set(tool.name, tool));
    cursor = page.nextCursor;
  } while (cursor);
  const call = (name, input, options) => {
    if (!tools.has(name)) {
      throw new Left('no such tool');
    }
    return kind.call(client, {name, arguments: input}, options);
  };
  return {kind, client, transport, tools, call, errors, revision: kind.revisionOf(client, transport)};
}

/** Closing the input must end the server before the client sends signals (2 s). */
async function close(session) {
  const started = Date.now();
  await session.client.close();
  const took = Date.now() - started;
  expect(took < 1900, `the server was still there after ${took} ms`);
}

let failed = 0;

function show(client, row, verdict, note) {
  failed += verdict === 'FAILED' ? 1 : 0;
  console.log(`${client.padEnd(26)} ${row.padEnd(22)} ${verdict.padEnd(8)} ${note ?? ''}`.trimEnd());
}

async function attempt(label, name, check) {
  try {
    show(label, name, 'ok', await check());
  } catch (error) {
    const left = error instanceof Left;
    show(label, name, left ? 'left out' : 'FAILED', left ? error.message : String(error));
  }
}

for (const kind of clients) {
  let session;
  await attempt(kind.label, 'connect', async () => { session = await open(kind); });
  if (!session) {
    continue;
  }
  for (const [name, check] of rows) {
    await attempt(kind.label, name, () => check(session));
  }
  await attempt(kind.label, 'end of input', () => close(session));
}
console.log(failed === 0 ? 'all passed' : `${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
