// The high-water mark of a witness's state: a file beside it with the largest size that was cosigned of each log. A state that was
// restored from an older copy, or has lost its end, is below it.
import { findText, replaceFile } from '#src/lib/files/durable.ts';

/** Leaves, by the SHA-256 of the origin (hex). */
export type Sizes = ReadonlyMap<string, number>;

export type HighWaterMark = {
  /** Empty if there is no file. A line that cannot be read is left out. */
  read(): Sizes;
  /** Durable when it returns; written only if it differs. One process at a time. */
  raise(sizes: Sizes): void;
  /** Forgets all of it. */
  begin(): void;
};

const LINE = /^([0-9a-f]{64}) (0|[1-9]\d{0,15})$/;

export function highWaterMark(file: string): HighWaterMark {
  const read = (): Sizes =>
    new Map(
      (findText(file) ?? '').split('\n').flatMap((line) => {
        const [, hash, size] = LINE.exec(line) ?? [];
        return hash === undefined ? [] : [[hash, Number(size)] as const];
      }),
    );
  const write = (sizes: Sizes) =>
    replaceFile(file, [...sizes].map(([hash, size]) => `${hash} ${size}\n`).join(''));
  return {
    read,
    raise(sizes) {
      const before = read();
      const raised = new Map(before);
      for (const [hash, size] of sizes) raised.set(hash, Math.max(size, before.get(hash) ?? 0));
      if ([...raised].some(([hash, size]) => before.get(hash) !== size)) write(raised);
    },
    begin: () => write(new Map()),
  };
}
