// Prices: exact amounts of US dollars (whole millionths, as USDC counts them; never a float), and what a paid route asks.
import type { JsonObject } from '#src/domain/canonical-json.ts';

/** `0.003`, `$0.003` or `0.0030` as 3000n; null where the text is no such amount or is finer than a millionth. */
export function microUsd(text: string): bigint | null {
  const found = /^\$?(\d{1,30})(?:\.(\d{1,6})0{0,30})?$/.exec(text);
  if (found === null) return null;
  const [, whole = '', part = ''] = found;
  return BigInt(whole + part.padEnd(6, '0'));
}

/** 3000n as `$0.003`. */
export function showUsd(micro: bigint): string {
  const digits = String(micro).padStart(7, '0');
  const part = digits.slice(-6).replace(/0+$/, '');
  return `$${digits.slice(0, -6)}${part === '' ? '' : `.${part}`}`;
}

/** A paid route as its 402 asks for it (x402 version 2). */
export type AskedFor = {
  /** Absolute address: what the payer says it pays for. */
  readonly resource: string;
  /** Payment requirements, each of which pays. */
  readonly accepts: readonly JsonObject[];
  /** What catalogues may publish (`bazaar`). */
  readonly extensions: JsonObject;
};
