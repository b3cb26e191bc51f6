// SPDX-License-Identifier: Apache-2.0
// The official OpenAI client against a server: node openai.mjs URL KEY
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { check, errorOf, finish } from './check.mjs';

const [url, key] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 2 });
const model = 'test-model';
const text = 'Sphinx of black quartz, judge my vow. Grüße, 你好 🙂';
const ask = (content, more = {}, options = {}) =>
  client.chat.completions.create(
    { model, messages: [{ role: 'system', content: 'Repeat.' }, { role: 'user', content }], ...more },
    options);
const fault = (name, times) => ({ headers: { 'x-fake-fault': times ? `${name};${times};${Math.random()}` : name } });

const tools = [{
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}];
const format = (schema) => ({ type: 'json_schema', json_schema: { name: 'plan', strict: true, schema } });
const plan = {
  type: 'object',
  properties: { steps: { type: 'array', items: { type: 'string' } } },
  required: ['steps'],
  additionalProperties: false,
};

await check('an answer in one piece', async () => {
  const { data, response } = await ask(text).withResponse();
  assert.equal(data.choices[0].message.content, text);
  assert.equal(data.choices[0].finish_reason, 'stop');
  assert.equal(data.object, 'chat.completion');
  assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + data.usage.completion_tokens);
  assert.ok(data.usage.prompt_tokens > 0 && data.usage.completion_tokens > 0);
  assert.match(response.headers.get('x-request-id'), /^req_/);
});

await check('a stream with usage', async () => {
  const stream = await ask(text, { stream: true, stream_options: { include_usage: true } });
  let all = '';
  const reasons = [];
  let usage = null;
  let chunks = 0;
  for await (const chunk of stream) {
    chunks += 1;
    assert.equal(chunk.object, 'chat.completion.chunk');
    all += chunk.choices[0]?.delta?.content ?? '';
    if (chunk.choices[0]?.finish_reason) reasons.push(chunk.choices[0].finish_reason);
    if (chunk.usage) {
      assert.equal(chunk.choices.length, 0);
      usage = chunk.usage;
    }
  }
  assert.equal(all, text);
  assert.deepEqual(reasons, ['stop']);
  assert.ok(chunks > 10);
  assert.equal(usage.completion_tokens + usage.prompt_tokens, usage.total_tokens);
});

await check('a stream without usage', async () => {
  const stream = await ask(text, { stream: true });
  for await (const chunk of stream) assert.equal(chunk.usage ?? null, null);
});

await check("the client's own collector of streams", async () => {
  const runner = client.chat.completions.stream(
    { model, messages: [{ role: 'user', content: text }], stream_options: { include_usage: true } });
  const completion = await runner.finalChatCompletion();
  assert.equal(completion.choices[0].message.content, text);
});

await check('a tool is called and its result sent back', async () => {
  const messages = [{ role: 'user', content: 'weather in Paris' }];
  const first = await client.chat.completions.create({ model, messages, tools });
  assert.equal(first.choices[0].finish_reason, 'tool_calls');
  const calls = first.choices[0].message.tool_calls;
  assert.equal(calls.length, 2);
  assert.deepEqual(calls.map((call) => JSON.parse(call.function.arguments)),
    [{ city: 'Paris' }, { city: 'Orléans' }]);
  messages.push(first.choices[0].message);
  for (const call of calls) messages.push({ role: 'tool', tool_call_id: call.id, content: 'sunny' });
  const second = await client.chat.completions.create({ model, messages, tools });
  assert.equal(second.choices[0].message.content, 'sunny');
});

await check('tool calls in a stream', async () => {
  const runner = client.chat.completions.stream(
    { model, messages: [{ role: 'user', content: 'weather in Paris' }], tools });
  const message = (await runner.finalChatCompletion()).choices[0].message;
  assert.deepEqual(message.tool_calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]),
    [['get_weather', { city: 'Paris' }], ['get_weather', { city: 'Orléans' }]]);
});

await check('a result of a tool that nobody called is refused', async () => {
  const error = await errorOf(client.chat.completions.create(
    { model, messages: [{ role: 'user', content: 'x' }, { role: 'tool', tool_call_id: 'no', content: 'y' }] }));
  assert.ok(error instanceof OpenAI.BadRequestError);
});

await check('structured output', async () => {
  const answer = await client.chat.completions.parse(
    { model, messages: [{ role: 'user', content: 'make a plan' }], response_format: format(plan) });
  assert.deepEqual(JSON.parse(answer.choices[0].message.content), { steps: ['a', 'b'] });
});

await check('a schema that is not strict is refused', async () => {
  const error = await errorOf(ask('make a plan', { response_format: format({ type: 'object', properties: {} }) }));
  assert.equal(error.status, 400);
  assert.match(error.message, /additionalProperties/);
});

await check('max_tokens ends an answer', async () => {
  const answer = await ask(text, { max_completion_tokens: 2 });
  assert.equal(answer.choices[0].finish_reason, 'length');
  assert.equal(answer.usage.completion_tokens, 2);
});

await check('a refusal', async () => {
  const answer = await ask(text, {}, fault('refused'));
  assert.equal(answer.choices[0].message.content, null);
  assert.match(answer.choices[0].message.refusal, /sorry/);
});

await check('a long prompt is cached the second time', async () => {
  const long = 'cache me '.repeat(400);
  assert.equal((await ask(long)).usage.prompt_tokens_details.cached_tokens, 0);
  assert.ok((await ask(long)).usage.prompt_tokens_details.cached_tokens > 800);
});

await check('models', async () => {
  const ids = [];
  for await (const entry of client.models.list()) ids.push(entry.id);
  assert.deepEqual(ids, [model]);
});

await check('401', async () => {
  const other = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'sk-wrong', maxRetries: 2 });
  const error = await errorOf(other.models.list());
  assert.ok(error instanceof OpenAI.AuthenticationError);
  assert.equal(error.code, 'invalid_api_key');
});

await check('404', async () => {
  const error = await errorOf(ask('x', { model: 'no-such-model' }));
  assert.ok(error instanceof OpenAI.NotFoundError);
  assert.equal(error.code, 'model_not_found');
});

for (const name of ['rate_limited_ms', 'rate_limited_seconds', 'rate_limited_date', 'server_error',
  'unavailable', 'reset_before_headers', 'html_502']) {
  await check(`the client retries: ${name}`, async () => {
    const answer = await ask(text, {}, fault(name, 1));
    assert.equal(answer.choices[0].message.content, text);
  });
}

await check('429 that stays', async () => {
  const error = await errorOf(ask('x', {}, fault('rate_limited_ms')));
  assert.ok(error instanceof OpenAI.RateLimitError);
  assert.equal(error.code, 'rate_limit_exceeded');
});

await check('429 insufficient_quota', async () => {
  const error = await errorOf(ask('x', {}, { ...fault('quota'), maxRetries: 0 }));
  assert.equal(error.code, 'insufficient_quota');
});

await check('500 that stays', async () => {
  const error = await errorOf(ask('x', {}, { ...fault('server_error'), maxRetries: 0 }));
  assert.ok(error instanceof OpenAI.InternalServerError);
});

await check('an error inside a stream', async () => {
  const stream = await ask(text, { stream: true }, fault('error_event'));
  const error = await errorOf((async () => { for await (const chunk of stream) void chunk; })());
  assert.ok(error instanceof OpenAI.APIError);
});

await check('a stream that is cut', async () => {
  const stream = await ask(text, { stream: true }, fault('cut_in_event'));
  await errorOf((async () => { for await (const chunk of stream) void chunk; })());
});

await check('a slow stream is whole', async () => {
  const stream = await ask(text, { stream: true }, fault('slow'));
  let all = '';
  for await (const chunk of stream) all += chunk.choices[0]?.delta?.content ?? '';
  assert.equal(all, text);
});

finish();
