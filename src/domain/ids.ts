// Identifiers: a prefix that names the kind, then 128 random bits in Crockford base32 (26 letters, no '-',
// because EventStoreDB's category is the text before the first '-'). The random bytes are an argument.

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

export type IdPrefix = 'job' | 'rcpt' | 'dec' | 'hnd';

/** `random`: 16 bytes or more; the first 16 are used. */
export function makeId(prefix: IdPrefix, random: Uint8Array): string {
  if (random.length < 16) throw new RangeError('an id needs 16 random bytes');
  let bits = 0n;
  for (const byte of random.subarray(0, 16)) bits = (bits << 8n) | BigInt(byte);
  let text = '';
  for (let i = 0; i < 26; i++) {
    text = ALPHABET.charAt(Number(bits & 31n)) + text;
    bits >>= 5n;
  }
  return `${prefix}_${text}`;
}

export const ID_PATTERN = {
  job: '^job_[0-9a-hjkmnp-tv-z]{26}$',
  receipt: '^rcpt_[0-9a-hjkmnp-tv-z]{26}$',
  decision: '^dec_[0-9a-hjkmnp-tv-z]{26}$',
  handoff: '^hnd_[0-9a-hjkmnp-tv-z]{26}$',
} as const;
