// The proxy examples of deploy/ in front of the real service: it counts the client by the address that the proxy saw, and
// believes no header that the client wrote.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { needsProgram } from '#test/support/chain/requirements.ts';
import { fixedPort } from '#test/support/process/fixed-port.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import type { Service } from '#test/support/process/service.ts';
import { makeTestCa } from '#test/support/process/test-ca.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { makeWorld, type World } from '#test/support/world/service-world.ts';

const folder = testFolder('proxies');
const example = (name: string) => readFileSync(`${rootPath}/deploy/proxy/${name}`, 'utf8');
/** Replaces what occurs once. */
function replaced(source: string, from: string, to: string): string {
  assert.equal(source.split(from).length, 2, from);
  return source.replace(from, () => to);
}

type Proxy = { readonly port: number; readonly child: ChildProcess; output(): string };

function started(port: number, command: string, args: readonly string[], env = {}): Proxy {
  const child = spawn(command, args, {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (part: string) => {
      output += part;
    });
  return { port, child, output: () => output };
}

async function startNginx(relayPort: number): Promise<Proxy> {
  const port = await fixedPort();
  const { certPem, keyPem } = certificate();
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(cert, certPem);
  writeFileSync(key, keyPem);
  let site = replaced(example('nginx.conf'), '127.0.0.1:3402', `127.0.0.1:${relayPort}`);
  site = replaced(site, 'listen 443 ssl', `listen ${port} ssl`);
  site = replaced(site, '/etc/ssl/relay.example/fullchain.pem', cert);
  site = replaced(site, '/etc/ssl/relay.example/privkey.pem', key);
  writeFileSync(join(folder, 'relay.conf'), site);
  const home = join(folder, 'nginx');
  mkdirSync(home);
  // Its workers are another user.
  for (const path of [folder, home]) chmodSync(path, 0o755);
  const config = join(folder, 'nginx.conf');
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${home}/${name};`,
  );
  writeFileSync(
    config,
    `daemon off; pid ${home}/pid; error_log stderr; events {} http { access_log off; ${paths.join(' ')} include ${folder}/relay.conf; }`,
  );
  const checked = spawnSync('nginx', ['-t', '-p', home, '-c', config], { encoding: 'utf8' });
  assert.equal(checked.status, 0, checked.stderr);
  assert.doesNotMatch(checked.stderr, /\[warn\]/);
  return started(port, 'nginx', ['-p', home, '-c', config]);
}

const certificate = () => {
  const { cert, key } = makeTestCa().issue({ names: ['relay.example'] });
  return { certPem: String(cert), keyPem: String(key) };
};

async function startCaddy(relayPort: number): Promise<Proxy> {
  const [port, plain] = [await fixedPort(), await fixedPort()];
  const config = join(folder, 'Caddyfile');
  const options = `admin off\n skip_install_trust\n http_port ${plain}\n https_port ${port}`;
  writeFileSync(config, `{\n ${options}\n}\nimport ${rootPath}/deploy/proxy/Caddyfile\n`);
  const env = {
    HOME: folder,
    XDG_DATA_HOME: folder,
    XDG_CONFIG_HOME: folder,
    RELAY_HOST: `localhost:${port}`,
    RELAY_NAME: '127.0.0.1',
    RELAY_PORT: `${relayPort}`,
  };
  const args = ['--config', config, '--adapter', 'caddyfile'];
  const checked = spawnSync('caddy', ['validate', ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  assert.equal(checked.status, 0, checked.stderr);
  return started(port, 'caddy', ['run', ...args], env);
}

type Answer = { readonly status: number; readonly body: string };

/** From that address of loopback. */
function ask(
  port: number,
  path: string,
  from: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const body = path.startsWith('/api/') ? '{"url":"https://example.com/hook"}' : undefined;
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        host: '127.0.0.1',
        servername: 'localhost',
        port,
        path,
        localAddress: from,
        method: body === undefined ? 'GET' : 'POST',
        headers: { host: `localhost:${port}`, 'content-type': 'application/json', ...headers },
        rejectUnauthorized: false,
        agent: false,
      },
      async (response) => resolve({ status: response.statusCode ?? 0, body: await text(response) }),
    );
    asked.once('error', reject);
    asked.end(body);
  });
}

async function answering(proxy: Proxy): Promise<void> {
  for (let left = 200; left > 0; left--) {
    if (proxy.child.exitCode !== null) break;
    const answer = await ask(proxy.port, '/health/live', '127.0.0.1').catch(() => null);
    if (answer?.status === 200) return;
    await sleep(50);
  }
  throw new Error(`the proxy does not answer: ${proxy.output()}`);
}

const LIMIT = 3;
const CHECK = '/api/policy/check';

for (const [name, start] of [
  ['nginx', startNginx],
  ['caddy', startCaddy],
] as const)
  describe(name, needsProgram(name), () => {
    let world: World;
    let service: Service;
    let proxy: Proxy;
    before(async () => {
      world = await makeWorld();
      service = await world.start({
        TRUSTED_PROXIES: '127.0.0.1/32',
        RATE_LIMIT_PER_MINUTE: `${LIMIT}`,
        PUBLIC_BASE_URL: 'http://127.0.0.1:3402',
      });
      proxy = await start(Number(new URL(service.url).port));
      await answering(proxy);
    });
    after(async () => {
      if (proxy !== undefined && proxy.child.exitCode === null) {
        proxy.child.kill('SIGTERM');
        await once(proxy.child, 'exit');
      }
      await world.end();
    });
    const check = async (from: string, headers?: Record<string, string>) =>
      (await ask(proxy.port, CHECK, from, headers)).status;

    test('each client has a limit of its own, and no header gives it another', async () => {
      for (let n = 0; n < LIMIT; n++) assert.equal(await check('127.0.0.2'), 200);
      assert.equal(await check('127.0.0.2'), 429);
      // Another client is not the first one, and cannot use up the limit of a third.
      const spoofed = { 'x-forwarded-for': '127.0.0.4' };
      for (let n = 0; n < LIMIT; n++) assert.equal(await check('127.0.0.3', spoofed), 200);
      assert.equal(await check('127.0.0.3', spoofed), 429);
      assert.equal(await check('127.0.0.4'), 200);
      for (const header of ['x-forwarded-for', 'x-real-ip', 'forwarded', 'true-client-ip'])
        assert.equal(
          await check('127.0.0.2', { [header]: header === 'forwarded' ? 'for=9.9.9.9' : '9.9.9.9' }),
          429,
        );
      assert.equal(await check('127.0.0.2', { 'x-forwarded-for': '9.9.9.9, 127.0.0.1' }), 429);
    });

    test('figures are not passed on', async () => {
      assert.equal((await ask(proxy.port, '/metrics', '127.0.0.5')).status, 404);
      assert.equal((await fetch(`${service.url}/metrics`)).status, 200);
    });

    test('a header of the size of a payment is passed on', async () => {
      const { status } = await ask(proxy.port, '/', '127.0.0.6', { 'x-large': 'a'.repeat(20_000) });
      assert.equal(status, 200);
    });
  });
