// Processes of another user, and file systems of a test's own: both need root. Where one cannot be had, its suite is skipped.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { requirement } from '#test/support/chain/requirements.ts';
import { runtimeCommand } from './runtime.ts';

/** An unprivileged user of most systems. */
export const OTHER_UID = 65534;

/** Starts a program as that user, without any capability. */
export const AS_OTHER_USER: readonly string[] = [
  'setpriv',
  `--reuid=${OTHER_UID}`,
  `--regid=${OTHER_UID}`,
  '--clear-groups',
  '--inh-caps=-all',
];

/** That user can be taken, and may read this checkout. Call it at the top of the file. */
export function needsOtherUser() {
  const [runtime, args] = runtimeCommand('src/cli/relay.ts', ['--version']);
  const [command = '', ...rest] = [...AS_OTHER_USER, runtime, ...args];
  const present = process.getuid?.() === 0 && spawnSync(command, rest).status === 0;
  return requirement('root', present, 'no root, no setpriv, or a checkout that user 65534 may not read');
}

/** A file system in memory can be mounted. Call it at the top of the file. */
export function needsMounts() {
  const folder = mkdtempSync(join(tmpdir(), 'relay-mount-'));
  const present = process.getuid?.() === 0 && tried(() => mountMemory(folder, '1m'));
  if (present) unmount(folder);
  rmSync(folder, { recursive: true, force: true });
  return requirement('mounts', present, 'no root, or no file system can be mounted');
}

/** An ext4 file system in a file can be mounted, and becomes read-only by an error. Call it at the top of the file. */
export function needsFailingDisk() {
  const folder = mkdtempSync(join(tmpdir(), 'relay-disk-'));
  const present = process.getuid?.() === 0 && tried(() => failingDisk(folder).end());
  rmSync(folder, { recursive: true, force: true });
  return requirement('failing disk', present, 'no root, mke2fs, or loop device with trigger_fs_error');
}

/** `size`: as mount has it. Everyone may write to it. */
export function mountMemory(folder: string, size: string): void {
  mkdirSync(folder, { recursive: true });
  run('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=777`, 'tmpfs', folder]);
}

export function remount(folder: string, options: string): void {
  run('mount', ['-o', `remount,${options}`, folder]);
}

/** Fills the file system of this file until nothing more can be written. */
export function fillDisk(path: string): void {
  for (let chunk = Buffer.alloc(65_536); chunk.length > 0; ) {
    try {
      writeFileSync(path, chunk, { flag: 'a' });
    } catch {
      chunk = chunk.subarray(0, Math.floor(chunk.length / 16));
    }
  }
}

/** As far as nothing in it is open; otherwise when that is closed. */
export function unmount(folder: string): void {
  run('umount', ['--lazy', folder]);
}

export type FailingDisk = {
  readonly folder: string;
  /** The kernel makes it read-only, as after an error of the disk. */
  fail(): void;
  /** While nothing in it is open: it can be written again. */
  repair(): void;
  end(): void;
};

/** Files below `parent`. */
export function failingDisk(parent: string): FailingDisk {
  const [image, folder] = [join(parent, 'disk.img'), join(parent, 'disk')];
  mkdirSync(folder, { recursive: true });
  run('truncate', ['--size=24M', image]);
  run('mke2fs', ['-q', '-t', 'ext4', '-m', '0', image]);
  const mount = () => run('mount', ['-o', 'loop,errors=remount-ro', image, folder]);
  mount();
  const device = run('findmnt', ['--noheadings', '--output=SOURCE', folder]).trim().replace('/dev/', '');
  return {
    folder,
    fail: () => void run('sh', ['-c', `echo 1 > /sys/fs/ext4/${device}/trigger_fs_error`]),
    repair() {
      run('umount', [folder]);
      mount();
    },
    end() {
      unmount(folder);
      rmSync(image, { force: true });
    },
  };
}

function run(command: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr ?? error}`);
  return stdout;
}

function tried(work: () => void): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}
