// Payments for a run that is due later: who vouches for the signature of an authorization that is not valid yet.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Hex, serializeErc6492Signature } from 'viem';
import type { X402 } from '#src/adapters/payments/x402.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { type ControlledChain, startControlledChain } from '#test/support/chain/controlled-chain.ts';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { type Authorization, authorizationOf, lab, presented, signatureOf, v2, wallet } from './lab.ts';

const NOW = 1_767_323_045;
const DUE = NOW + 86_400;
const RUN = { nowMs: NOW * 1000, dueMs: DUE * 1000, untilMs: (DUE + 300) * 1000 };
const WINDOW = { validAfter: String(DUE - 60), validBefore: String(DUE + 420) };

/** Of a contract wallet at `from`, signed by `owner`. */
async function ticketOf(x402: X402, from: string, owner = wallet(), changes: Partial<Authorization> = {}) {
  const authorization = authorizationOf(owner, { from: from as never, ...WINDOW, ...changes });
  const signature = `${await signatureOf(owner, authorization)}00` as const;
  return presented(x402, v2({ authorization, signature }));
}

test('the facilitator, if it is valid now; else the payer’s own key, or the node for a contract wallet', async () => {
  const x402 = await lab();
  const owner = wallet();
  const own = async (changes: Partial<Authorization>) => {
    const authorization = authorizationOf(owner, { ...WINDOW, ...changes });
    return presented(x402, v2({ authorization, signature: await signatureOf(owner, authorization) }));
  };
  const verdicts = [
    await own({ validAfter: String(NOW) }),
    await own({}),
    await ticketOf(x402, wallet().address, owner, { validAfter: String(NOW) }),
    await ticketOf(x402, wallet().address),
    await own({ validAfter: String(DUE + 1) }),
  ].map((payment) => {
    const verdict = x402.payments.validateTicket(payment, RUN);
    return isRefused(verdict) ? verdict.details : verdict.verifiedBy;
  });
  const late = { reason: 'authorization_not_yet_valid' };
  assert.deepEqual(verdicts, ['facilitator', 'key', 'facilitator', 'node', late]);
});

describe('the node is asked whether a contract wallet accepts the signature', needsAnvil(), () => {
  const owner = wallet();
  const { address } = wallet();
  let chain: ControlledChain;
  let x402: X402;
  before(async () => {
    chain = await startControlledChain();
    x402 = await lab({ x402: { rpcUrl: chain.url } });
    await chain.placeWallet(address, owner.address);
  });
  after(async () => chain?.stop());

  const INVALID = { outcome: 'invalid', reason: 'invalid_signature' };
  const asked = async (from: string, by = owner, changes: Partial<Authorization> = {}) =>
    x402.payments.verifySignature(await ticketOf(x402, from, by, changes));

  test('its owner’s, long before it is valid: accepted', async () => {
    assert.deepEqual(await asked(address), { outcome: 'valid' });
  });

  test('of another key, or over other terms: not accepted', async () => {
    assert.deepEqual(await asked(address, wallet()), INVALID);
    const authorization = authorizationOf(owner, { from: address, ...WINDOW });
    const signature = `${await signatureOf(owner, { ...authorization, value: '1' })}00` as const;
    const payment = await presented(x402, v2({ authorization, signature }));
    assert.deepEqual(await x402.payments.verifySignature(payment), INVALID);
  });

  test('of an address without a contract, or of one without the function: not accepted', async () => {
    assert.deepEqual(await asked(wallet().address), INVALID);
    const token = (await ticketOf(x402, address)).asset;
    assert.deepEqual(await asked(token), INVALID);
  });

  /** As a wallet signs that brings the call which deploys it (ERC-6492). */
  async function wrapped(from: Hex, by = owner, more = '') {
    const authorization = authorizationOf(by, { from, ...WINDOW });
    const own = `${await signatureOf(by, authorization)}00` as const;
    const signature = serializeErc6492Signature({ address: wallet().address, data: '0x01', signature: own });
    const sent = `0x${more}${signature.slice(2)}` as const;
    return x402.payments.verifySignature(await presented(x402, v2({ authorization, signature: sent })));
  }

  test('of a wallet that is not deployed: wallet_not_deployed, whatever would deploy it; once it is, accepted', async () => {
    const later = wallet().address;
    assert.deepEqual(await wrapped(later), { outcome: 'invalid', reason: 'wallet_not_deployed' });
    await chain.placeWallet(later, owner.address);
    assert.deepEqual(await wrapped(later), { outcome: 'valid' });
    assert.deepEqual(await wrapped(later, wallet()), INVALID);
    assert.deepEqual(await wrapped(later, owner, 'ff'), INVALID, 'one that cannot be read');
  });

  test('no answer: unavailable', async () => {
    const payment = await ticketOf(x402, address);
    await chain.stop();
    assert.deepEqual(await x402.payments.verifySignature(payment), { outcome: 'unavailable' });
  });
});
