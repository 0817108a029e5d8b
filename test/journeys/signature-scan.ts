// Signatures of payments must be nowhere: who reads one can submit it. Every form in which a program may have written
// one, and one pass that finds any of thousands of them in files of any size.
import assert from 'node:assert/strict';
import type { ApiKey } from '#test/support/chain/facilitator-login.ts';
import type { Payment } from '#test/support/chain/payer.ts';
import { formsOf } from '#test/support/given/canaries.ts';

export type Needle = { readonly name: string; readonly bytes: Buffer };

/** Of which each window of 40 characters holds one whole. */
const CHUNK = 20;

/** The signature's two numbers. Whatever holds a signature in hex, raw or base64 holds these so. */
export function signatureNeedles(name: string, payment: Payment): Needle[] {
  const { signature } = payment.payload.payload as { readonly signature: string };
  const hex = signature.slice(2).toLowerCase();
  return [
    ...numberNeedles(`r of ${name}`, hex.slice(0, 64)),
    ...numberNeedles(`s of ${name}`, hex.slice(64, 128)),
  ];
}

/**
 * The part of the headers that says the signature: any window of 40 characters of it is found. The rest of a header
 * says terms and payer, which receipts say too, and their base64 may be the same by chance.
 */
export function headerNeedles(name: string, payment: Payment): Needle[] {
  return signaturesInHeaders(payment).flatMap((part) =>
    Array.from({ length: Math.floor(part.length / CHUNK) }, (_, n) => {
      const chunk = part.slice(n * CHUNK, (n + 1) * CHUNK);
      return { name: `header of ${name}`, bytes: Buffer.from(chunk) };
    }),
  );
}

/** In base64, as the headers of both versions have it. */
export function signaturesInHeaders({ headers, payload }: Payment): string[] {
  const signature = String(payload.payload.signature);
  return Object.values({ ...headers[1], ...headers[2] }).map((header) => {
    const start = Buffer.from(header, 'base64').indexOf(signature);
    assert.ok(start > 0, 'the header says the signature');
    return header.slice(4 * Math.ceil(start / 3), 4 * Math.floor((start + signature.length) / 3));
  });
}

/** Of an API key's private half, and of every token that it signed (their last part). */
export function loginNeedles({ secret }: Pick<ApiKey, 'secret'>, tokens: readonly string[]): Needle[] {
  const seed = Buffer.from(secret, 'base64').subarray(0, 32);
  const signatures = tokens.map((token) => Buffer.from(token.split('.').at(-1) ?? '').subarray(0, 40));
  return [
    ...numberNeedles('the API key', seed.toString('hex')),
    ...signatures.map((bytes) => ({ name: 'a token', bytes })),
  ];
}

export const nonceNeedles = (name: string, { nonce }: Payment): Needle[] =>
  numberNeedles(`nonce of ${name}`, nonce.slice(2).toLowerCase());

/** `hex`: 64 digits, lower case. */
function numberNeedles(name: string, hex: string): Needle[] {
  const raw = Buffer.from(hex, 'hex');
  const texts = [hex, hex.toUpperCase()].flatMap((text) => formsOf(text));
  const inside = [0, 1, 2].flatMap((offset) => {
    const base64 = Buffer.concat([Buffer.alloc(offset), raw]).toString('base64');
    const own = base64.slice(offset === 0 ? 0 : 4, 40);
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')];
  });
  const others = [String(BigInt(`0x${hex}`)), [...raw].join(','), ...inside];
  const forms = [raw, ...texts, ...others.map((text) => Buffer.from(text))];
  return forms.map((bytes) => ({ name, bytes }));
}

/** Names of the needles that stand in the data. Each needle has at least 4 bytes. */
export function scanner(needles: readonly Needle[]): (data: Buffer | string) => string[] {
  const byStart = new Map<number, Needle[]>();
  // One byte distinguishes most positions.
  const starts = new Uint8Array(1 << 20);
  for (const needle of needles) {
    const start = needle.bytes.readUInt32LE(0);
    byStart.set(start, [...(byStart.get(start) ?? []), needle]);
    starts[slotOf(start)] = 1;
  }
  return (data) => {
    const bytes = Buffer.from(data);
    const found = new Set<string>();
    let four = 0;
    for (let at = 0; at < bytes.length; at++) {
      // The last four bytes, as they are read from the start of a needle.
      four = (four >>> 8) | ((bytes[at] ?? 0) << 24);
      if (at < 3 || starts[slotOf(four)] === 0) continue;
      for (const needle of byStart.get(four >>> 0) ?? []) {
        const from = at - 3;
        if (bytes.subarray(from, from + needle.bytes.length).equals(needle.bytes)) found.add(needle.name);
      }
    }
    return [...found].sort();
  };
}

const slotOf = (four: number): number => Math.imul(four, 0x9e3779b1) >>> 12;
