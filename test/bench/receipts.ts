// P5: reads of receipts over HTTP, and their offline verification, against a loop of raw Ed25519 verifications of the same
// signed bytes. The service is the embedded one; its receipts are of real calls and in its transparency log.
import { createPublicKey, verify } from 'node:crypto';
import process from 'node:process';
import { ed25519Verify } from '#src/adapters/signing/ed25519.ts';
import { fromBase64url, utf8 } from '#src/domain/encoding.ts';
import { readReceiptDocument, verifyDocument } from '#src/domain/receipt/document.ts';
import { fromJwkSet, type KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { waitFor } from '#test/support/process/service.ts';
import { execute, get, makeWorld, type Report, type World } from '#test/support/world/service-world.ts';
import { demand, load, type Turn } from './load.ts';
import { type Goal, interleaved, type Measure, NO_GOAL, type Row, ratioAtLeast, row } from './rounds.ts';

const CALLERS = 32;

export const receiptsMeasure: Measure = {
  name: 'P5',
  title: 'reads and verification of receipts',
  async run(options) {
    const { rounds, say } = options;
    const world = await makeWorld({ embedded: true });
    try {
      const service = await world.start();
      const each = options.count(300, 150, 10);
      const receipts = await recordedReceipts(world, service.url, each * (rounds + 1));
      say(`${receipts.length} receipts`);
      const { body: jwks } = await get(`${service.url}/.well-known/jwks.json`);
      const keys = fromJwkSet(jwks) ?? [];
      /** Every turn of a side has receipts that the turns before had not; each is read `times` times. */
      const turns = (times: number, path: (receipt: Recorded) => string) => {
        let turn = 0;
        return () => {
          const own = receipts.slice(turn * each, (turn + 1) * each);
          turn++;
          return load(service.pid, CALLERS, own.length * times, async (n) => {
            const receipt = own[n % own.length];
            await demand(`${service.url}${receipt === undefined ? '' : path(receipt)}`);
          });
        };
      };
      const sides = {
        raw: () => loop(receipts, rawVerifier(keys)),
        offline: () => loop(receipts, ({ jws }) => isVerified(jws, keys, null)),
        proven: () => loop(receipts, ({ jws, proof }) => isVerified(jws, keys, proof)),
        // In this order: what a side reads first is read again by the next ones.
        firstReceipt: turns(1, ({ id }) => `/api/receipts/${id}`),
        receipt: turns(5, ({ id }) => `/api/receipts/${id}`),
        firstVerify: turns(1, ({ id }) => `/api/verify/receipts/${id}`),
        verify: turns(5, ({ id }) => `/api/verify/receipts/${id}`),
        page: turns(5, ({ id }) => `/proof/${id}`),
      };
      const found = await interleaved(options, sides);
      const rows: Row[] = [];
      const add = (side: keyof typeof sides, title: string, goal: Goal) => {
        const of = (figure: keyof Turn) =>
          found.map((turn) => ({ ours: turn[side][figure], peer: turn.raw[figure] }));
        const titles = { measure: 'P5', peer: 'raw Ed25519 verify' };
        rows.push(row({ ...titles, title, unit: '/s' }, goal, of('perSecond')));
        rows.push(row({ ...titles, title: `CPU of ${title}`, unit: 'ms' }, NO_GOAL, of('cpu')));
      };
      add('receipt', 'GET receipt, again', ratioAtLeast(0.2));
      add('verify', 'GET verify, again', ratioAtLeast(0.2));
      add('page', 'proof page, again', ratioAtLeast(0.2));
      add('firstReceipt', 'GET receipt, first', NO_GOAL);
      add('firstVerify', 'GET verify, first', NO_GOAL);
      add('offline', 'offline, as `relay verify`', ratioAtLeast(0.85));
      add('proven', 'offline with inclusion proof', ratioAtLeast(0.4));
      const notes = [
        'raw Ed25519 verify: node:crypto verifies the signatures of the same receipts one after the other, without HTTP.',
        `Embedded stores, receipts of real calls, each in the transparency log. first: no request has read the receipt; again: 5 reads of each of ${each} receipts that were read before.`,
      ];
      return { rows, notes };
    } finally {
      await world.end();
    }
  },
};

type Recorded = { readonly id: string; readonly jws: string; readonly proof: string };

/** Of so many calls; all of them are in the transparency log. */
async function recordedReceipts(world: World, url: string, count: number): Promise<readonly Recorded[]> {
  const made: { readonly id: string; readonly jws: string }[] = [];
  const target = world.target.url('/hook', '127.0.0.1');
  let next = 0;
  const caller = async () => {
    for (let n = next++; n < count; n = next++) {
      const { status, body } = await execute({ url }, { url: target, body: { n } });
      if (status !== 200) throw new Error(`a call answered ${status}`);
      made.push({ id: body.receipt.id, jws: body.receipt.jws });
      world.target.requests.length = 0;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  await waitFor('all receipts are logged', async () => {
    const last = await get<Report>(`${url}/api/verify/receipts/${made.at(-1)?.id}`);
    const logged = last.body.checks.find(({ name }) => name === 'receipt_logged')?.details;
    return JSON.stringify(logged ?? null).includes('"pending":false');
  });
  const receipts: Recorded[] = [];
  for (const receipt of made) {
    const proof = await get<string>(`${url}/log/proof/${receipt.id}`);
    if (proof.status !== 200) throw new Error(`a proof answered ${proof.status}`);
    receipts.push({ ...receipt, proof: proof.body });
  }
  return receipts;
}

/** Verifies each receipt in this process, one after the other. */
async function loop(
  receipts: readonly Recorded[],
  work: (receipt: Recorded) => boolean | Promise<boolean>,
): Promise<Turn> {
  const before = process.cpuUsage();
  const begun = performance.now();
  for (const receipt of receipts) if (!(await work(receipt))) throw new Error('a receipt does not verify');
  const ms = performance.now() - begun;
  const { user, system } = process.cpuUsage(before);
  const one = ms / receipts.length;
  return { perSecond: 1000 / one, p50: one, p99: one, cpu: (user + system) / 1000 / receipts.length };
}

function rawVerifier(keys: readonly KeyRecord[]): (receipt: Recorded) => boolean {
  const x = keys.find(({ purpose }) => purpose === 'receipt')?.x ?? '';
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  return ({ jws }) => {
    const end = jws.lastIndexOf('.');
    return verify(null, utf8(jws.slice(0, end)), key, fromBase64url(jws.slice(end + 1)) ?? new Uint8Array(0));
  };
}

/** What `relay verify` does with a text that it has read. */
async function isVerified(text: string, keys: readonly KeyRecord[], proof: string | null): Promise<boolean> {
  const log = proof === null ? null : { proof, now: Math.floor(Date.now() / 1000) };
  const facts = { keys, log, disclosures: null, receiptId: null, jobId: null };
  return (await verifyDocument(readReceiptDocument(text), facts, { ed25519Verify })).ok;
}
