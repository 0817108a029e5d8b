// The image without a container engine: the instructions of deploy/Containerfile are carried out in a folder, and the result
// runs in it as the image's user, with nothing to write to but its volume.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { chownSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { DockerfileParser } from 'dockerfile-ast';
import { endOf, inherited } from '#test/support/process/cli-process.ts';
import { fixedPort } from '#test/support/process/fixed-port.ts';
import { needsMounts } from '#test/support/process/other-user.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { waitFor } from '#test/support/process/service.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { execute } from '#test/support/world/service-world.ts';

const folder = testFolder('image');
const image = join(folder, 'image');
const source = readFileSync(`${rootPath}/deploy/Containerfile`, 'utf8');
const COMMIT = 'fedcba9876543210fedcba9876543210fedcba98';

type Step = { readonly keyword: string; readonly text: string };
const stages = (): readonly (readonly Step[])[] => {
  const found: Step[][] = [];
  for (const one of DockerfileParser.parse(source).getInstructions()) {
    const keyword = one.getKeyword();
    if (keyword === 'FROM') found.push([]);
    const text = one.getTextContent().slice(keyword.length).trim();
    found.at(-1)?.push({ keyword, text });
  }
  return found;
};

/** Absolute paths of the build begin with one of these two. */
const inFolder = (text: string) => text.replace(/(?<![\w.-])\/(image|build)\b/g, `${folder}/$1`);

function build(steps: readonly Step[]): void {
  const env: Record<string, string> = inherited();
  let cwd = folder;
  for (const { keyword, text } of steps) {
    if (keyword === 'ARG') {
      const [name = '', value = ''] = text.split('=');
      env[name] = name === 'COMMIT' ? COMMIT : value;
    } else if (keyword === 'WORKDIR') {
      cwd = inFolder(text);
      mkdirSync(cwd, { recursive: true });
    } else if (keyword === 'COPY') {
      const paths = text.split(' ');
      const to = paths.pop() ?? '';
      for (const path of paths) {
        const target = to.endsWith('/') ? join(cwd, to, path.split('/').at(-1) ?? '') : join(cwd, to);
        mkdirSync(dirname(target), { recursive: true });
        cpSync(join(rootPath, path), target, { recursive: true });
      }
    } else if (keyword === 'RUN') {
      const { status, stdout, stderr } = spawnSync('sh', ['-ec', inFolder(text)], {
        cwd,
        env,
        encoding: 'utf8',
      });
      assert.equal(status, 0, `${text}\n${stdout}${stderr}`);
    } else assert.equal(keyword, 'FROM');
  }
}

const sizeOf = (path: string): number =>
  statSync(path).isDirectory()
    ? readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
    : statSync(path).size;

describe('the image', { ...needsMounts(), timeout: 300_000 }, () => {
  const [first = [], last = []] = stages();
  const of = (keyword: string) => last.filter((step) => step.keyword === keyword).map(({ text }) => text);
  const [user = ''] = of('USER');
  const env = Object.fromEntries(
    of('ENV').flatMap((text) => text.split(' ').map((pair) => pair.split('=') as [string, string])),
  );

  before(() => build(first));

  /** Its root is read-only, as with --read-only; an engine mounts /proc, /dev, a /tmp and the volume. */
  const inImage = (args: readonly string[], more: Readonly<Record<string, string>>) => {
    const volume = join(folder, 'volume');
    mkdirSync(volume, { recursive: true });
    const [uid = 0, gid = 0] = user.split(':').map(Number);
    chownSync(volume, uid, gid);
    for (const name of ['proc', 'dev', 'tmp']) mkdirSync(join(image, name), { recursive: true });
    const script = [
      `mount --bind ${image} ${image}`,
      `mount -t proc proc ${image}/proc`,
      `mount --rbind /dev ${image}/dev`,
      `mount --bind ${volume} ${image}/var/lib/relay`,
      `mount -t tmpfs tmpfs ${image}/tmp`,
      `mount -o remount,ro,bind ${image}`,
      `exec chroot --userspec=${user} ${image} "$@"`,
    ].join(' && ');
    const child = spawn('unshare', ['--mount', 'sh', '-c', script, 'sh', ...args], {
      env: { PATH: process.env.PATH, ...env, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (part: string) => {
        output[name] += part;
      });
    return { pid: child.pid ?? 0, output, ended: endOf(child, output) };
  };

  test('contains the binary, its libraries, and no other program', () => {
    assert.deepEqual(
      readdirSync(image).sort(),
      ['etc', 'lib', 'lib64', 'relay', 'tmp', 'var'].filter((name) => existsSync(join(image, name))),
    );
    const stated = Number(/About (\d+) MB/.exec(source)?.[1]);
    const megabytes = sizeOf(image) / 1e6;
    assert.ok(Math.abs(megabytes - stated) < stated * 0.1, `${megabytes.toFixed(1)} MB`);
  });

  test('states the commit', async () => {
    const { code, stdout, stderr } = await inImage(['/relay', '--version'], {}).ended;
    assert.deepEqual([code, stdout], [0, `0.1.0 (commit ${COMMIT})\n`], stderr);
  });

  test('serves as its user on a read-only root, is found healthy, and ends by SIGTERM', async () => {
    const port = String(await fixedPort());
    const entry: string[] = [of('ENTRYPOINT'), of('CMD')].flatMap(([text = '[]']) => JSON.parse(text));
    const settings = { PORT: port, ALLOW_FREE_RELAY: 'true' };
    const service = inImage(entry, settings);
    const url = `http://127.0.0.1:${port}`;
    const [, check = '[]'] = /CMD (\[.*\])$/.exec(of('HEALTHCHECK')[0] ?? '') ?? [];
    await waitFor('the service to listen', () => service.output.stdout.includes('"listening"'));
    assert.match(readFileSync(`/proc/${service.pid}/status`, 'utf8'), /^Uid:\t10001\t10001\t10001\t10001$/m);
    assert.equal((await inImage(JSON.parse(check), settings).ended).code, 0);
    await waitFor('the pages', async () => (await fetch(`${url}/status`)).status === 200);
    const { status } = await execute({ url }, { url: 'https://127.0.0.1/hook' });
    assert.equal(status, 400, 'a private address is refused');
    const backup = await inImage(['/relay', 'backup', '--out', '/var/lib/relay/backup'], settings).ended;
    assert.equal(backup.code, 0, backup.stderr);
    const elsewhere = await inImage(['/relay', 'backup', '--out', '/backup'], settings).ended;
    assert.match(elsewhere.stderr, /read-only file system|EROFS/);
    process.kill(service.pid, 'SIGTERM');
    const { code, stderr } = await service.ended;
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal((await inImage(JSON.parse(check), settings).ended).code, 1);
  });
});
