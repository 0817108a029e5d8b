// The answer of the target, for a buyer that asks for it: only the bytes that the receipt commits to are accepted.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ANSWERED, changed, type Lies } from '#test/support/witness/lying-relay.ts';
import { buyerWorld, good, membersOf, REQUEST } from '#test/support/world/buyer-world.ts';

const ASKS = { returnResponse: true };

test('the first answer has it, verified; it is sent as the header Prefer and no part of the order', async () => {
  const { relay, buy } = buyerWorld();
  const preferred: (string | null)[] = [];
  relay.lie({
    respond(request, honest) {
      preferred.push(request.headers.get('prefer'));
      return honest();
    },
  });
  const bought = await buy(ASKS);
  good(bought);
  const { body, ...rest } = bought.result.evidence?.response ?? assert.fail();
  assert.equal(Buffer.from(body).toString(), ANSWERED.body);
  assert.deepEqual(rest, { status: 200, headers: ANSWERED.headers, truncated: false });
  assert.deepEqual(
    preferred.filter((one) => one !== null),
    ['return=representation'],
  );
});

test('bytes that are no text', async () => {
  const { relay, buy } = buyerWorld();
  const base64 = Buffer.from(ANSWERED.body).toString('base64');
  relay.lie({
    answer: (draft) => {
      const body = changed(changed(draft.body, 'response.encoding', 'base64'), 'response.body', base64);
      return { ...draft, body };
    },
  });
  const bought = await buy(ASKS);
  good(bought);
  assert.equal(Buffer.from(bought.result.evidence?.response?.body ?? []).toString(), ANSWERED.body);
});

test('a target that fails: its answer is returned, too', async () => {
  const { buy } = buyerWorld();
  const { result } = await buy({ ...ASKS, request: { ...REQUEST, url: 'https://target.example/fails' } });
  assert.deepEqual([result.outcome, result.evidence?.response?.status], ['target_failed', 500]);
});

test('none in the answer: a lost first answer, and a relay that returns none; the purchase is verified', async () => {
  const lost = buyerWorld();
  let losses = 1;
  lost.relay.lie({
    async respond(request, honest) {
      const answer = await honest();
      if (request.headers.has('PAYMENT-SIGNATURE') && losses-- > 0) throw new Error('cut');
      return answer;
    },
  });
  const silent = buyerWorld();
  silent.relay.lie({ answer: (draft) => ({ ...draft, body: changed(draft.body, 'response', undefined) }) });
  for (const { buy } of [lost, silent]) {
    const bought = await buy(ASKS);
    good(bought);
    assert.equal(bought.result.evidence?.response, null);
  }
});

test('a buyer that does not ask ignores one', async () => {
  const { relay, buy } = buyerWorld();
  relay.lie({
    answer: (draft) => ({ ...draft, body: { ...draft.body, response: { ...ANSWERED, status: 200 } } }),
  });
  const bought = await buy();
  good(bought);
  assert.equal(bought.result.evidence?.response, null);
});

describe('an answer that is not the one of the receipt is not this purchase', () => {
  const shown = (path: string, value: unknown): Lies => ({
    answer: (draft) => ({ ...draft, body: changed(draft.body, `response.${path}`, value) }),
  });
  const cases: readonly (readonly [string, Lies, string])[] = [
    ['another body', shown('body', 'the answer: ö'), 'response.body'],
    ['a body that is cut', shown('body', 'the answer'), 'response.body'],
    ['another status', shown('status', 201), 'response.status'],
    ['cut, though it is not', shown('truncated', true), 'response.truncated'],
    ['no encoding', shown('encoding', undefined), 'response'],
    ['no base64', shown('encoding', 'base64'), 'response'],
    ['a number as body', shown('body', 7), 'response'],
    ['a number as header', shown('headers', { 'content-type': 7 }), 'response'],
    [
      'no disclosure of its hash',
      {
        answer: (draft) => ({
          ...draft,
          body: { ...draft.body, disclosures: (draft.body.disclosures as string[]).slice(0, -1) },
        }),
      },
      'response.body',
    ],
  ];
  for (const [name, lie, member] of cases)
    test(`${name}: ${member}`, async () => {
      const { relay, buy } = buyerWorld();
      relay.lie(lie);
      const { result, signed } = await buy(ASKS);
      assert.deepEqual([result.outcome, result.error?.member, signed], ['unverified', member, 1]);
      assert.ok(membersOf(result).includes(member));
      assert.equal(result.evidence?.response, null);
    });
});
