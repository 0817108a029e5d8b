// The service behind proxies that are configured with the address to pass to alone: each paid route asks for its payment
// through them and takes it, from a private key and from a contract wallet.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import { SCHEDULE_REQUEST_EXAMPLE } from '#src/discovery/schedule-examples.ts';
import { type FacilitatorDouble, facilitatorDouble } from '#test/support/chain/facilitator-double.ts';
import { challenge, makePayment, newPayer, type Payer } from '#test/support/chain/payer.ts';
import { needsProgram } from '#test/support/chain/requirements.ts';
import { type ChainNode, startChainNode } from '#test/support/chain/scripted-node.ts';
import { fixedPort } from '#test/support/process/fixed-port.ts';
import type { Service } from '#test/support/process/service.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { makeWorld, post, type World } from '#test/support/world/service-world.ts';

/** Of the status line and all headers: nginx passes on 4 kB. */
const HEAD_MAX = 3500;
/** As long as those of real deployments are. */
const PUBLIC_URL = 'https://webhook-relay.agents.example.com';

const folder = testFolder('default-proxies');

function started(command: string, args: readonly string[]): ChildProcess {
  const env = { PATH: process.env.PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  return spawn(command, args, { env, stdio: 'ignore' });
}

const PROXIES = {
  nginx(port: number, relayPort: number) {
    const home = join(folder, `nginx-${port}`);
    mkdirSync(home);
    // Its workers are another user.
    for (const path of [folder, home]) chmodSync(path, 0o755);
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${home}/${name};`,
    );
    const server = `server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${relayPort}; } }`;
    const http = `http { access_log off; ${paths.join(' ')} ${server} }`;
    writeFileSync(
      join(home, 'nginx.conf'),
      `daemon off; pid ${home}/pid; error_log ${home}/log; events {} ${http}`,
    );
    return started('nginx', ['-p', home, '-c', join(home, 'nginx.conf')]);
  },
  caddy(port: number, relayPort: number) {
    const file = join(folder, 'Caddyfile');
    writeFileSync(
      file,
      `{\n admin off\n}\nhttp://127.0.0.1:${port} {\n reverse_proxy 127.0.0.1:${relayPort}\n}\n`,
    );
    return started('caddy', ['run', '--config', file, '--adapter', 'caddyfile']);
  },
  haproxy(port: number, relayPort: number) {
    const file = join(folder, 'haproxy.cfg');
    const defaults = 'defaults\n mode http\n timeout connect 5s\n timeout client 50s\n timeout server 50s\n';
    writeFileSync(
      file,
      `${defaults}frontend web\n bind 127.0.0.1:${port}\n default_backend relay\nbackend relay\n server relay 127.0.0.1:${relayPort}\n`,
    );
    return started('haproxy', ['-db', '-f', file]);
  },
} as const;

async function answering(url: string, proxy: ChildProcess): Promise<void> {
  for (let left = 200; left > 0 && proxy.exitCode === null; left--) {
    const answer = await fetch(`${url}/health/live`).catch(() => null);
    if (answer?.status === 200) return;
    await sleep(50);
  }
  throw new Error('the proxy does not answer');
}

/** Bytes up to the blank line, as they are on the wire. */
function headBytes(port: number, path: string, body: unknown): Promise<number> {
  const text = JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(
        `POST ${path} HTTP/1.1\r\nhost: relay\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`,
      ),
    );
    let received = '';
    socket.setEncoding('latin1').on('data', (part) => {
      received += part;
    });
    socket.once('error', reject).once('close', () => {
      if (received.startsWith('HTTP/1.1 402')) resolve(received.indexOf('\r\n\r\n') + 4);
      else reject(new Error(received));
    });
  });
}

describe('a paid route', () => {
  let world: World;
  let facilitator: FacilitatorDouble;
  let chain: ChainNode;
  let service: Service;
  before(async () => {
    world = await makeWorld();
    facilitator = await facilitatorDouble();
    chain = await startChainNode(facilitator.chain);
    service = await world.start({
      PUBLIC_BASE_URL: PUBLIC_URL,
      SCHEDULES: 'on',
      X402_ENABLED: 'true',
      X402_PAY_TO: newPayer().address,
      X402_FACILITATOR_URL: facilitator.url,
      X402_RPC_URL: chain.url,
      X402_CONFIRM_SECONDS: '0',
    });
  });
  after(async () => {
    await world.end();
    await facilitator.close();
    await chain.down();
  });

  const webhook = (path: string) => ({ url: world.target.url(path), body: { order: 1 } });
  const schedule = (path: string) => ({ ...SCHEDULE_REQUEST_EXAMPLE, webhook: webhook(path) });
  const EXECUTE = PAID_ROUTES['execute/webhook'].path;
  const GUIDED = PAID_ROUTES['execute/guided-webhook'].path;
  const CREATE = '/api/schedules/webhook';

  function walletPaying(): Payer {
    const owner = newPayer();
    const address = newPayer().address;
    chain.faults.contracts.add(address.toLowerCase());
    const signTypedData: Payer['signTypedData'] = async (typed) =>
      `${await owner.signTypedData(typed)}${'ab'.repeat(300)}`;
    return { ...owner, address, signTypedData };
  }

  /** Pays through the proxy what it asks for there. */
  async function pay(payer: Payer, url: string, body: unknown) {
    const { headers } = await makePayment(payer, await challenge(url, body));
    return post<Record<string, unknown>>(url, body, headers[2]);
  }

  async function orders(url: string, name: string) {
    const action = { ...webhook(`/${name}-guided`), idempotencyKey: name };
    const decided = await post<{ decisionId: string }>(`${url}/api/decide/webhook`, {
      action,
      buyerPolicy: {},
    });
    return [
      { path: EXECUTE, body: webhook(`/${name}`), status: 200 },
      { path: GUIDED, body: { decisionId: decided.body.decisionId, action }, status: 200 },
      { path: CREATE, body: schedule(`/${name}-run`), status: 201 },
    ];
  }

  test(`asks for its payment in a head of at most ${HEAD_MAX} bytes`, async () => {
    const port = Number(new URL(service.url).port);
    const created = await pay(newPayer(), `${service.url}${CREATE}`, schedule('/size-run'));
    const fund = `/api/schedules/${created.body.scheduleId}/runs`;
    const expired = { url: 'https://hooks.example.com/', method: 'POST' };
    for (const [path, body] of [
      [EXECUTE, expired],
      [GUIDED, {}],
      [CREATE, {}],
      [CREATE, schedule('/size-run-2')],
      [fund, {}],
    ] as const) {
      const bytes = await headBytes(port, path, body);
      assert.ok(bytes <= HEAD_MAX, `${path}: ${bytes} bytes`);
    }
  });

  for (const name of ['nginx', 'caddy', 'haproxy'] as const)
    describe(`behind ${name} with its defaults`, needsProgram(name), () => {
      let proxy: ChildProcess;
      let url: string;
      before(async () => {
        const port = await fixedPort();
        url = `http://127.0.0.1:${port}`;
        proxy = PROXIES[name](port, Number(new URL(service.url).port));
        await answering(url, proxy);
      });
      after(async () => {
        if (proxy === undefined || proxy.exitCode !== null) return;
        proxy.kill('SIGTERM');
        await once(proxy, 'exit');
      });

      for (const [kind, payerOf] of [
        ['a private key', newPayer],
        ['a contract wallet', walletPaying],
      ] as const)
        test(`is paid by ${kind}`, async () => {
          for (const { path, body, status } of await orders(url, `${name}-${kind.replaceAll(' ', '-')}`)) {
            const payer = payerOf();
            const answer = await pay(payer, url + path, body);
            assert.equal(answer.status, status, `${path}: ${JSON.stringify(answer.body)}`);
            if (path !== CREATE) continue;
            const more = await pay(payer, `${url}/api/schedules/${answer.body.scheduleId}/runs`, {});
            assert.equal(more.status, 201, JSON.stringify(more.body));
          }
        });
    });
});
