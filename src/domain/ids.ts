// Identifiers: a prefix that names the kind, then 128 random bits in Crockford base32 (26 letters, no '-',
// because EventStoreDB's category is the text before the first '-'). The random bytes are an argument.
import { toHex } from './encoding.ts';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** `random`: 16 bytes or more; the first 16 are used. */
export function makeId(prefix: 'job' | 'rcpt' | 'dec' | 'hnd' | 'sch', random: Uint8Array): string {
  if (random.length < 16) throw new RangeError('an id needs 16 random bytes');
  const number = BigInt(`0x${toHex(random.subarray(0, 16))}`);
  // 26 digits hold 130 bits: the first one is at most 7.
  const digits = number.toString(32).padStart(26, '0');
  return `${prefix}_${digits.replaceAll(/./g, (digit) => ALPHABET.charAt(Number.parseInt(digit, 32)))}`;
}

export const ID_PATTERN = {
  job: '^job_[0-9a-hjkmnp-tv-z]{26}$',
  receipt: '^rcpt_[0-9a-hjkmnp-tv-z]{26}$',
  decision: '^dec_[0-9a-hjkmnp-tv-z]{26}$',
  handoff: '^hnd_[0-9a-hjkmnp-tv-z]{26}$',
  schedule: '^sch_[0-9a-hjkmnp-tv-z]{26}$',
} as const;
