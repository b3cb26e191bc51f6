// SPDX-License-Identifier: Apache-2.0
// The official Anthropic client against a server: node anthropic.mjs URL KEY
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { check, errorOf, finish } from './check.mjs';

const [url, key] = process.argv.slice(2);
const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 2 });
const model = 'test-model';
const text = 'Sphinx of black quartz, judge my vow. Grüße, 你好 🙂';
const base = (content) => ({ model, max_tokens: 1000, system: 'Repeat.', messages: [{ role: 'user', content }] });
const ask = (content, more = {}, options = {}) => client.messages.create({ ...base(content), ...more }, options);
const fault = (name, times) => ({ headers: { 'x-fake-fault': times ? `${name};${times};${Math.random()}` : name } });
const tools = [{
  name: 'get_weather',
  description: 'The weather of a city',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}];

await check('an answer in one piece', async () => {
  const { data, response } = await ask(text).withResponse();
  assert.deepEqual(data.content, [{ type: 'text', text }]);
  assert.equal(data.stop_reason, 'end_turn');
  assert.equal(data.role, 'assistant');
  assert.ok(data.usage.input_tokens > 0 && data.usage.output_tokens > 0);
  assert.match(response.headers.get('request-id'), /^req_/);
});

await check('the events of a stream, in order', async () => {
  const types = [];
  let all = '';
  let usage = null;
  for await (const event of await ask(text, { stream: true })) {
    if (event.type === 'content_block_delta') all += event.delta.text;
    if (event.type === 'message_delta') usage = event.usage;
    if (types.at(-1) !== event.type) types.push(event.type);
  }
  assert.equal(all, text);
  assert.deepEqual(types, ['message_start', 'content_block_start', 'content_block_delta',
    'content_block_stop', 'message_delta', 'message_stop']);
  assert.ok(usage.output_tokens > 10);
});

await check("the client's own collector of streams", async () => {
  const message = await client.messages.stream(base(text)).finalMessage();
  assert.deepEqual(message.content.map(({ type, text: said }) => ({ type, text: said })), [{ type: 'text', text }]);
  assert.equal(message.stop_reason, 'end_turn');
  assert.ok(message.usage.output_tokens > 10);
});

await check('a tool is called and its result sent back', async () => {
  const messages = [{ role: 'user', content: 'weather in Paris' }];
  const first = await client.messages.create({ model, max_tokens: 1000, messages, tools });
  assert.equal(first.stop_reason, 'tool_use');
  const uses = first.content.filter((block) => block.type === 'tool_use');
  assert.deepEqual(uses.map((use) => use.input), [{ city: 'Paris' }, { city: 'Orléans' }]);
  messages.push({ role: 'assistant', content: first.content });
  messages.push({
    role: 'user',
    content: uses.map((use) => ({ type: 'tool_result', tool_use_id: use.id, content: 'sunny;' })),
  });
  const second = await client.messages.create({ model, max_tokens: 1000, messages, tools });
  assert.equal(second.content[0].text, 'sunny;sunny;');
});

await check('tool calls in a stream', async () => {
  const stream = client.messages.stream({ ...base('weather in Paris'), tools });
  const uses = (await stream.finalMessage()).content.filter((block) => block.type === 'tool_use');
  assert.deepEqual(uses.map((use) => [use.name, use.input]),
    [['get_weather', { city: 'Paris' }], ['get_weather', { city: 'Orléans' }]]);
});

await check('a call without a result is refused', async () => {
  const error = await errorOf(client.messages.create({
    model,
    max_tokens: 10,
    messages: [{ role: 'user', content: 'x' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: {} }] },
      { role: 'user', content: 'y' }],
  }));
  assert.ok(error instanceof Anthropic.BadRequestError);
});

await check('structured output', async () => {
  const schema = {
    type: 'object',
    properties: { steps: { type: 'array', items: { type: 'string' } } },
    required: ['steps'],
    additionalProperties: false,
  };
  const answer = await client.messages.parse(
    { ...base('make a plan'), output_config: { format: { type: 'json_schema', schema } } });
  assert.deepEqual(JSON.parse(answer.content[0].text), { steps: ['a', 'b'] });
});

await check('max_tokens ends an answer', async () => {
  const answer = await ask(text, { max_tokens: 2 });
  assert.equal(answer.stop_reason, 'max_tokens');
  assert.equal(answer.usage.output_tokens, 2);
});

await check('a refusal', async () => {
  assert.equal((await ask(text, {}, fault('refused'))).stop_reason, 'refusal');
});

await check('what is marked is cached', async () => {
  const system = [{ type: 'text', text: 'cache me too '.repeat(300), cache_control: { type: 'ephemeral' } }];
  const first = (await ask('x', { system })).usage;
  const second = (await ask('y', { system })).usage;
  assert.ok(first.cache_creation_input_tokens > 800);
  assert.equal(first.cache_read_input_tokens, 0);
  assert.equal(second.cache_read_input_tokens, first.cache_creation_input_tokens);
  assert.equal(second.cache_creation_input_tokens, 0);
  assert.equal((await ask('cache me three '.repeat(300))).usage.cache_creation_input_tokens, 0);
});

await check('models', async () => {
  const ids = [];
  for await (const entry of client.models.list()) ids.push(entry.id);
  assert.deepEqual(ids, [model]);
});

await check('401', async () => {
  const other = new Anthropic({ baseURL: url, apiKey: 'sk-wrong', maxRetries: 2 });
  const error = await errorOf(other.messages.create(base('x')));
  assert.ok(error instanceof Anthropic.AuthenticationError);
  assert.equal(error.error.error.type, 'authentication_error');
});

await check('404', async () => {
  const error = await errorOf(ask('x', { model: 'no-such-model' }));
  assert.ok(error instanceof Anthropic.NotFoundError);
  assert.equal(error.error.error.type, 'not_found_error');
});

for (const name of ['rate_limited_ms', 'rate_limited_seconds', 'rate_limited_date', 'server_error',
  'overloaded', 'reset_before_headers', 'html_502']) {
  await check(`the client retries: ${name}`, async () => {
    assert.equal((await ask(text, {}, fault(name, 1))).content[0].text, text);
  });
}

await check('429 that stays', async () => {
  const error = await errorOf(ask('x', {}, fault('rate_limited_ms')));
  assert.ok(error instanceof Anthropic.RateLimitError);
  assert.equal(error.error.error.type, 'rate_limit_error');
});

await check('500 that stays', async () => {
  const error = await errorOf(ask('x', {}, { ...fault('server_error'), maxRetries: 0 }));
  assert.ok(error instanceof Anthropic.InternalServerError);
});

await check('an error inside a stream', async () => {
  const stream = await ask(text, { stream: true }, fault('error_event'));
  const error = await errorOf((async () => { for await (const event of stream) void event; })());
  assert.ok(error instanceof Anthropic.APIError);
  assert.match(error.message, /overloaded_error/);
});

await check('a stream that is cut', async () => {
  await errorOf(client.messages.stream(base(text), fault('cut_in_event')).finalMessage());
});

await check('a slow stream is whole', async () => {
  const message = await client.messages.stream(base(text), fault('slow')).finalMessage();
  assert.equal(message.content[0].text, text);
});

finish();
