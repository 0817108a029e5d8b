// Processes that are measured from outside: their CPU time and memory, as the operating system counts them (Linux).
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { rootPath } from '#test/support/process/runtime.ts';
import { waitFor } from '#test/support/process/service.ts';

export type Measured = { readonly pid: number; readonly url: string; stop(): Promise<void> };

/** Starts a peer's script under Bun; resolves when it prints where it listens. */
export async function startPeer(
  script: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Measured> {
  const child = spawn(process.execPath, [`${rootPath}/test/bench/peers/${script}`], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const listen = await waitFor(`${script} listens`, () => /"listen":"([^"]+)"/.exec(output)?.[1], {
    everyMs: 2,
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return {
    pid: child.pid ?? 0,
    url: `http://${listen}`,
    stop() {
      child.kill('SIGKILL');
      return ended;
    },
  };
}

/** proc(5): clock ticks are 10 ms on every Linux that Bun supports. */
const TICK_MS = 10;

/** User and system time of all threads of a process so far, ms. */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** From now on the peak is that of what follows. */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** Resident memory now and at its peak, MB. */
export function memoryMb(pid: number): { readonly now: number; readonly peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mb = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024;
  return { now: mb('VmRSS'), peak: mb('VmHWM') };
}
