// Runs many seeds in worker processes, one for each core.
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { rootPath } from '#test/support/process/runtime.ts';
import type { SeedResult } from './run-seed.ts';

export type SeedsOptions = {
  readonly from: number;
  readonly count: number;
  /** null: the program as it is. */
  readonly defect: string | null;
  readonly workers?: number;
  /** Returns false to end. */
  readonly onResult: (result: SeedResult) => boolean;
};

/** A worker alters modules while they are loaded, which needs Bun. */
const BUN =
  process.versions.bun === undefined ? join(rootPath, 'node_modules', '.bin', 'bun') : process.execPath;

const WORKER = join(import.meta.dirname, 'worker.ts');

/** Rejects if a worker fails. */
export async function runSeeds({
  from,
  count,
  defect,
  onResult,
  workers = availableParallelism(),
}: SeedsOptions): Promise<void> {
  const used = Math.min(workers, count);
  const children = Array.from({ length: used }, (_, n) => {
    const share = Math.ceil((count - n) / used);
    const args = [String(from + n), String(share), String(used), defect ?? '-'];
    return spawn(BUN, [WORKER, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  });
  let isOver = false;
  const end = () => {
    isOver = true;
    for (const child of children) child.kill();
  };
  await Promise.all(
    children.map(async (child) => {
      const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
      for await (const line of createInterface({ input: child.stdout })) {
        if (!isOver && !onResult(JSON.parse(line))) end();
      }
      const code = await ended;
      if (code !== 0 && !isOver) {
        end();
        throw new Error(`a worker ended with ${code}`);
      }
    }),
  );
}
