// Defects of this program, distinguished from failures of its stores by the kind of the error alone.

/** Of a statement that is wrong whatever is stored: cardinality, data, integrity, syntax or a name. */
const OF_STATEMENTS = /^(?:21|22|23|42)/;
/** Want of a privilege; a table or schema of a generation that was dropped meanwhile. */
const OF_THE_STORE: readonly string[] = ['42501', '42P01'];
/** What JavaScript throws where code is wrong. The drivers' own are wrapped by drizzle. */
const OF_CODE = [TypeError, RangeError, ReferenceError, SyntaxError];

/**
 * Whether what was thrown, by a query or by our own code, is a defect of this program, and not a part that is unavailable.
 */
export function isDefect(thrown: unknown): boolean {
  if (OF_CODE.some((kind) => thrown instanceof kind)) return true;
  for (let at = thrown; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string' && /^[0-9A-Z]{5}$/.test(at.code))
      return OF_STATEMENTS.test(at.code) && !OF_THE_STORE.includes(at.code);
  }
  return false;
}
