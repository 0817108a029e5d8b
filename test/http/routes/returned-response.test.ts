// The answer of the target in the answer of the relay: for a caller who asks for it, and for no other.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TargetResponse } from '#src/ports/outbound.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { callMessage, sendMessage } from '#test/support/process/mcp-client.ts';
import { decided, execution, fakeWorld } from '#test/support/world/http-deps.ts';

const EXECUTE = '/api/execute/webhook';
const REQUEST = { url: 'https://a.example/hook' };
const ASKS = { prefer: 'return=representation' };

const answered = (changes: Partial<TargetResponse> = {}): TargetResponse => ({
  status: 200,
  headers: { 'content-type': 'text/plain' },
  body: Buffer.from('the answer'),
  truncated: false,
  ...changes,
});

const answering = (response: TargetResponse | null = answered()) =>
  fakeWorld({ execute: async () => execution({ response }) });

describe('which calls ask for it (RFC 7240)', () => {
  for (const [prefer, asks] of [
    ['return=representation', true],
    ['RETURN = representation', true],
    ['return="representation"', true],
    ['respond-async, return=representation; x=1, wait=10', true],
    ['x="a,b;c\\", return=minimal", return=representation', true],
    ['return=minimal, return=representation', false],
    ['x="return=representation"', false],
    ['x="unclosed, return=representation', false],
    ['return=minimal', false],
    ['return', false],
    ['return=', false],
    ['return=Representation', false],
    ['returns=representation', false],
    ['', false],
  ] as const)
    test(`${prefer}: ${asks}`, async () => {
      const world = fakeWorld();
      await clientOf(world).post(EXECUTE, REQUEST, { prefer });
      assert.equal(world.executed[0]?.returnsResponse, asks);
    });

  test('none without the header, nor where the operator has switched it off', async () => {
    const world = fakeWorld();
    await clientOf(world).post(EXECUTE, REQUEST);
    const off = fakeWorld({ settings: { ...world.settings, returnsResponses: false } });
    const answer = await clientOf(off).post(EXECUTE, REQUEST, ASKS);
    assert.deepEqual([answer.status, answer.headers.get('preference-applied')], [200, null]);
    assert.deepEqual(
      [...world.executed, ...off.executed].map(({ returnsResponse }) => returnsResponse),
      [false, false],
    );
  });

  test('it is no part of the request', async () => {
    const world = fakeWorld();
    await clientOf(world).post(EXECUTE, REQUEST, ASKS);
    assert.deepEqual(world.executed[0]?.request, REQUEST);
  });

  test('guided execution, too', async () => {
    const world = fakeWorld();
    const body = { decisionId: decided().decisionId, action: REQUEST };
    await clientOf(world).post('/api/execute/guided-webhook', body, ASKS);
    assert.equal(world.executedGuided[0]?.returnsResponse, true);
  });
});

describe('what is returned', () => {
  test('status, headers, body and whether it was cut, and the preference that was applied', async () => {
    const response = await clientOf(answering()).post(EXECUTE, REQUEST, ASKS);
    assert.equal(response.headers.get('preference-applied'), 'return=representation');
    const { response: shown } = (await response.json()) as { response: unknown };
    assert.deepEqual(shown, {
      status: 200,
      headers: { 'content-type': 'text/plain' },
      encoding: 'utf8',
      body: 'the answer',
      truncated: false,
    });
  });

  for (const [name, body, encoding] of [
    ['an empty body', Buffer.alloc(0), 'utf8'],
    ['text with a byte order mark, controls and an emoji', Buffer.from('\ufeff\u0000\u2028"\\ü😀'), 'utf8'],
    ['bytes that are no UTF-8', Buffer.from([0xff, 0xfe, 0x00, 0xc3]), 'base64'],
    ['text that is cut within a character', Buffer.from('ü').subarray(0, 1), 'base64'],
  ] as const)
    test(`${name}: the very bytes, in ${encoding}`, async () => {
      const response = await clientOf(answering(answered({ body, truncated: 'unknown' }))).post(
        EXECUTE,
        REQUEST,
        ASKS,
      );
      const { response: shown } = (await response.json()) as {
        response: { encoding: 'utf8' | 'base64'; body: string; truncated: unknown };
      };
      assert.deepEqual([shown.encoding, shown.truncated], [encoding, 'unknown']);
      assert.deepEqual(Buffer.from(shown.body, shown.encoding), body);
    });

  test('nothing is returned: the answer is that of a call that does not ask, byte for byte', async () => {
    const plain = await clientOf(fakeWorld()).post(EXECUTE, REQUEST);
    const asked = await clientOf(answering(null)).post(EXECUTE, REQUEST, ASKS);
    const headersOf = ({ headers }: Response) =>
      [...headers].filter(([name]) => name !== 'x-request-id').map((one) => one.join(': '));
    assert.deepEqual(headersOf(asked), headersOf(plain));
    const text = await plain.text();
    assert.equal(await asked.text(), text);
    assert.deepEqual(Object.keys(JSON.parse(text)), [
      ...['mode', 'idempotentReplay', 'job', 'receipt', 'payment', 'disclosures', 'checkpoint', 'links'],
    ]);
    // What is returned is added at its end.
    const returned = await (await clientOf(answering()).post(EXECUTE, REQUEST, ASKS)).text();
    assert.ok(returned.startsWith(`${text.slice(0, -1)},"response":{`));
  });
});

describe('the argument returnResponse of an MCP tool', () => {
  const call = async (given: Record<string, unknown>, world = answering()) => {
    const http = clientOf(world);
    const answer = await sendMessage(http, callMessage('execute_webhook', given));
    const { result } = (await answer.json()) as {
      result: { isError: boolean; structuredContent: Record<string, unknown> };
    };
    return result;
  };

  test('true: the result has the answer of the target, and the route gets its own request', async () => {
    const asked: unknown[] = [];
    const world = fakeWorld({
      execute: async (input) => {
        asked.push([input.request, input.returnsResponse]);
        return execution({ response: answered() });
      },
    });
    const { isError, structuredContent } = await call({ ...REQUEST, returnResponse: true }, world);
    assert.deepEqual([isError, asked], [false, [[REQUEST, true]]]);
    assert.equal((structuredContent.response as { body: string }).body, 'the answer');
  });

  test('false, or none: nothing is asked for', async () => {
    for (const given of [{ ...REQUEST, returnResponse: false }, REQUEST]) {
      const world = fakeWorld();
      await call(given, world);
      assert.deepEqual(
        world.executed.map(({ request, returnsResponse }) => [request, returnsResponse]),
        [[REQUEST, false]],
      );
    }
  });

  test('anything else is refused, and so is the argument where the operator has switched it off', async () => {
    const world = fakeWorld();
    const off = fakeWorld({ settings: { ...world.settings, returnsResponses: false } });
    for (const [given, at] of [
      [{ ...REQUEST, returnResponse: 'true' }, world],
      [{ ...REQUEST, returnResponse: null }, world],
      [{ ...REQUEST, returnResponse: true }, off],
    ] as const) {
      const { isError, structuredContent } = await call(given, at);
      const { code, details } = structuredContent.error as { code: string; details: { path: string }[] };
      assert.deepEqual([isError, code, details[0]?.path], [true, 'invalid_request', '/returnResponse']);
    }
    assert.deepEqual([world.executed, off.executed], [[], []]);
  });
});
