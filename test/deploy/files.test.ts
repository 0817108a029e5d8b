// The Containerfile, the compose files and the systemd units of deploy/, read by parsers of their own languages.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { DockerfileParser } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { parseAllDocuments } from 'yaml';
import { readConfig } from '#src/config.ts';
import { VARIABLES } from '#src/config-variables.ts';
import { needsProgram } from '#test/support/chain/requirements.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('deploy-files');
const deploy = (file: string) => `${rootPath}/deploy/${file}`;
const read = (file: string) => readFileSync(deploy(file), 'utf8');
const { dependencies } = JSON.parse(readFileSync(`${rootPath}/package.json`, 'utf8'));

describe('Containerfile', () => {
  const instructions = DockerfileParser.parse(read('Containerfile')).getInstructions();
  const all = (keyword: string) =>
    instructions.filter((one) => one.getKeyword() === keyword).map((one) => one.getArgumentsContent() ?? '');

  test('is valid', () => assert.deepEqual(validate(read('Containerfile')), []));

  test('has two stages, and the second one nothing but the result of the first', () => {
    assert.equal(all('FROM').length, 2);
    assert.equal(all('FROM')[1], 'scratch');
    const last = instructions.findLastIndex((one) => one.getKeyword() === 'FROM');
    const after = instructions.slice(last).map((one) => one.getInstruction());
    assert.ok(!after.includes('RUN'));
    const copies = instructions.slice(last).filter((one) => one.getKeyword() === 'COPY');
    assert.equal(copies.length, 2);
    for (const copy of copies)
      assert.match(copy.getTextContent(), /^COPY --from=build --chown=\d+:\d+ \/image/);
  });

  test('installs production dependencies with the version of Bun that the tests run under', () => {
    assert.ok(all('ARG').includes(`BUN=${dependencies.bun}`));
    assert.ok(all('RUN').includes('npx -y bun@$BUN install --production --frozen-lockfile'));
  });

  test('runs the binary itself as a user without a name that could be root', () => {
    assert.deepEqual(all('USER'), ['10001:10001']);
    assert.deepEqual(all('ENTRYPOINT'), ['["/relay"]']);
    assert.deepEqual(all('STOPSIGNAL'), ['SIGTERM']);
    assert.match(all('HEALTHCHECK')[0] ?? '', /CMD \["\/relay", "doctor", "--live"\]$/);
  });
});

type Service = {
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly image: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly networks?: readonly string[] | Readonly<Record<string, { readonly ipv4_address?: string }>>;
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
  readonly stop_grace_period?: string;
};
type Compose = {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, unknown>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};

for (const file of ['compose.yaml', 'compose.embedded.yaml'])
  describe(file, () => {
    const [document] = parseAllDocuments(read(file), { strict: true, uniqueKeys: true });
    assert.ok(document && 'errors' in document);
    const compose: Compose = document.toJS();
    const services = Object.entries(compose.services);

    test('is valid, and names only what it declares', () => {
      assert.deepEqual([...document.errors, ...document.warnings], []);
      for (const [name, { networks = {}, volumes = [], depends_on = {} }] of services) {
        for (const network of Array.isArray(networks) ? networks : Object.keys(networks))
          assert.ok(network in compose.networks, `${name}: ${network}`);
        for (const volume of volumes
          .map((one) => one.split(':')[0] ?? '')
          .filter((one) => !/^[./]/.test(one)))
          assert.ok(volume in compose.volumes, `${name}: ${volume}`);
        for (const needed of Object.keys(depends_on)) assert.ok(needed in compose.services, needed);
      }
    });

    test('the relay and the proxy have a read-only root, no capability to keep and no way to another', () => {
      for (const name of ['relay', 'proxy']) {
        const service = compose.services[name];
        assert.equal(service?.read_only, true);
        assert.deepEqual(service.cap_drop, ['ALL']);
        assert.deepEqual(service.security_opt, ['no-new-privileges:true']);
      }
      assert.equal(compose.services.relay?.stop_grace_period, '130s');
    });

    test('the relay trusts the proxy and nothing else', () => {
      const networks = compose.services.proxy?.networks ?? {};
      const address = 'relay' in networks ? networks.relay.ipv4_address : undefined;
      assert.equal(compose.services.relay?.environment?.TRUSTED_PROXIES, `${address}/32`);
    });

    test('with relay.env and the image, it is a configuration of the relay', () => {
      const pairs = (text: string) =>
        [...text.matchAll(/^([A-Z][A-Z0-9_]+)=(.*)$/gm)].map(([, k = '', v = '']) => [k, v]);
      const image = /^ENV (.*)$/m.exec(read('Containerfile'))?.[1]?.replaceAll(' ', '\n') ?? '';
      const env = Object.fromEntries([...pairs(image), ...pairs(read('relay.env.example'))]);
      const own = compose.services.relay?.environment ?? {};
      const substituted = Object.entries(own).map(([name, value]) => [
        name,
        value.replace(/\$\{[^}]+\}/g, 'word'),
      ]);
      const config = readConfig({ ...env, ...Object.fromEntries(substituted) });
      assert.equal(config.listen.host, '0.0.0.0');
      assert.equal(config.dataDir, '/var/lib/relay');
    });

    test('sets variables that the relay reads', () => {
      const set = Object.keys(compose.services.relay?.environment ?? {});
      assert.deepEqual(
        set.filter((name) => !(name in VARIABLES)),
        [],
      );
    });
  });

test('relay.env.example: sets variables that the relay reads', () => {
  const names = [...read('relay.env.example').matchAll(/^#?([A-Z][A-Z0-9_]+)=/gm)].map(
    ([, name = '']) => name,
  );
  assert.ok(names.length >= 5);
  assert.deepEqual(
    names.filter((name) => !(name in VARIABLES)),
    [],
  );
});

describe('systemd units', needsProgram('systemd-analyze'), () => {
  const units: string[] = [];
  before(() => {
    // The programs that they start exist on the operator's machine.
    for (const path of globSync(deploy('systemd/*'))) {
      const unit = join(folder, basename(path).replace('@', '@3402'));
      copyFileSync(path, unit);
      writeFileSync(unit, readFileSync(unit, 'utf8').replaceAll('/usr/local/bin/relay', '/bin/true'));
      units.push(unit);
    }
    assert.equal(units.length, 4);
  });
  const analyze = (...args: string[]) => spawnSync('systemd-analyze', args, { encoding: 'utf8' });

  test('are valid', () => {
    const { status, stdout, stderr } = analyze('verify', '--man=no', ...units);
    assert.deepEqual([status, stdout + stderr], [0, '']);
  });

  test('expose little: at most 2.0 of 10', () => {
    for (const unit of units.filter((one) => one.endsWith('.service'))) {
      const { status, stdout, stderr } = analyze('security', '--offline=true', '--threshold=20', unit);
      assert.equal(status, 0, unit + stdout + stderr);
    }
  });
});
