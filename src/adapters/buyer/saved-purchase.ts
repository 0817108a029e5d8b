// What `--save FILE` stores: the payment in FILE before it is sent, and the execution response in FILE.result.json.
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { parsedJson } from '#src/domain/canonical-json.ts';
import { sha256, toHex, utf8 } from '#src/domain/encoding.ts';
import type { Terms } from './offer.ts';

/** The header that carries a payment. It is charged once; presented again, it returns the recorded answer. */
export type PaymentHeader = {
  readonly name: string;
  readonly value: string;
  /** Lower case. */
  readonly payer: string;
};

const FORMAT = 'relay-purchase/1';

type Purchase = { readonly payment: PaymentHeader; readonly terms: Terms };
type Saved = Purchase & {
  readonly format: typeof FORMAT;
  readonly url: string;
  readonly requestSha256: string;
};

/**
 * null: the file does not exist. Throws if it contains another purchase or something else, and if there is only the result
 * of an earlier purchase, which would be lost.
 */
export function readPurchase(file: string, url: string, body: string): Purchase | null {
  if (existsSync(file)) {
    const saved = parsedJson(readFileSync(file, 'utf8')) as Saved | null | undefined;
    if (saved?.format !== FORMAT || typeof saved.payment?.value !== 'string')
      throw new Error(`${file} is not a purchase that --save has written`);
    if (saved.url !== url || saved.requestSha256 !== sha256Hex(body))
      throw new Error(
        `${file} contains the purchase of another call: repeat that call, or name another file`,
      );
    return { payment: saved.payment, terms: saved.terms };
  }
  if (!existsSync(resultFile(file))) return null;
  throw new Error(
    `${resultFile(file)} exists: keep it as the result of an earlier purchase and name another file, or remove it; nothing was paid`,
  );
}

/** An existing file is not replaced. Throws if it cannot be written. */
export function savePurchase(file: string, url: string, body: string, purchase: Purchase): void {
  const saved: Saved = { format: FORMAT, url, requestSha256: sha256Hex(body), ...purchase };
  try {
    writeNew(file, `${JSON.stringify(saved, null, 2)}\n`);
  } catch (cause) {
    throw new Error(`${file} cannot be written (${codeOf(cause)}): nothing was paid`, { cause });
  }
}

const resultFile = (file: string): string => `${file}.result.json`;

/** `problem`: why the response is not in the file; null if it is. */
export type SavedResult = { readonly file: string; readonly problem: string | null };

/**
 * Stores the execution response as received. A stored one with the same receipt is not replaced: the first response
 * contains disclosures that a replay does not. Does not throw, because the response can still be shown.
 */
export function saveResult(purchaseFile: string, response: string): SavedResult {
  const file = resultFile(purchaseFile);
  try {
    if (!existsSync(file)) writeNew(file, response);
    const same = jwsOf(readFileSync(file, 'utf8')) === jwsOf(response);
    return { file, problem: same ? null : 'it contains something else' };
  } catch (cause) {
    return { file, problem: `it cannot be written (${codeOf(cause)})` };
  }
}

function jwsOf(text: string): unknown {
  const response = parsedJson(text) as { readonly receipt?: { readonly jws?: unknown } } | null | undefined;
  return response?.receipt?.jws ?? null;
}

/** On the disk when it returns, and whole: linked to its name afterwards. An existing file is not replaced. */
function writeNew(file: string, content: string): void {
  const part = `${file}.${process.pid}.part`;
  try {
    writeFileSync(part, content, { mode: 0o600, flush: true });
    linkSync(part, file);
  } finally {
    rmSync(part, { force: true });
  }
}

const codeOf = (cause: unknown): string =>
  String(cause instanceof Error && 'code' in cause ? cause.code : 'unknown');

const sha256Hex = (text: string): string => toHex(sha256(utf8(text)));
