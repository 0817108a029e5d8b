// Detects damage of open PGlite files. A probe does not detect it: with its files gone, PGlite still answers `select 1`
// and what it has in memory. So every failure of a real statement is examined.
import type { PGlite } from '@electric-sql/pglite';

export type DamageWatch = {
  /** True while no failure has indicated damage of the files. */
  isSound(): boolean;
  /** One odd failure is no proof; this many are. */
  isProven(): boolean;
  /** The last failure that counted. */
  cause(): unknown;
};

const PROOF = 3;

/** Watches every statement of this handle, from now on. */
export function watchDamage(pg: PGlite): DamageWatch {
  let count = 0;
  let last: unknown;
  const noting = async <T>(answer: Promise<T>): Promise<T> => {
    try {
      return await answer;
    } catch (error) {
      if (isOfTheFiles(error)) {
        count++;
        last = error;
      }
      throw error;
    }
  };
  const [query, transaction] = [pg.query.bind(pg), pg.transaction.bind(pg)];
  Object.assign(pg, {
    query: (...given: Parameters<PGlite['query']>) => noting(query(...given)),
    transaction: (...given: Parameters<PGlite['transaction']>) => noting(transaction(...given)),
  });
  return { isSound: () => count === 0, isProven: () => count >= PROOF, cause: () => last };
}

/**
 * Our statements are few and fixed: one that fails was met by files that are not as it left them, whatever the code
 * (after a panic PGlite refuses all that follows with 24000). Not so for bad values and for want of disk or memory.
 */
function isOfTheFiles(error: unknown): boolean {
  const code = sqlState(error);
  if (code !== null) return !/^(22|53)/.test(code);
  // PGlite itself stopped: a trap, or an exit.
  return error instanceof Error && /^(RuntimeError|ExitStatus)$/.test(error.name);
}

/** Of the error or of one of its causes: drizzle wraps what the database said. */
function sqlState(error: unknown): string | null {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string' && /^[0-9A-Z]{5}$/.test(at.code)) return at.code;
  }
  return null;
}
