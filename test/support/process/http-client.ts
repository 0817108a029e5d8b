// Calls the HTTP room in process, and holds every answer against the interface description that the room publishes.
import assert from 'node:assert/strict';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { appOf, type HttpWorld } from '#test/support/world/http-deps.ts';

type Answered = {
  readonly description: string;
  readonly content?: Record<string, { readonly schema: object }>;
};
export type OpenApi = {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly components: { readonly schemas: Record<string, object> };
  readonly paths: Record<
    string,
    Record<
      string,
      {
        readonly operationId: string;
        readonly security?: unknown;
        readonly parameters?: readonly { readonly schema: object }[];
        readonly requestBody?: { readonly content: Record<string, { readonly schema: object }> };
        readonly responses: Record<string, Answered>;
      }
    >
  >;
};

export type Client = {
  /** `path`: with its query. The answer has passed `fits`. */
  call(path: string, init?: RequestInit, clientAddress?: string): Promise<Response>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  get(path: string): Promise<{ readonly status: number; readonly headers: Headers; readonly body: unknown }>;
  document(): Promise<OpenApi>;
};

export function clientOf(deps: HttpWorld): Client {
  const app = appOf(deps);
  const raw = (path: string, init?: RequestInit, clientAddress = '198.51.100.7') =>
    app.fetch(new Request(`http://localhost${path}`, init), { clientAddress });
  let document: Promise<OpenApi> | undefined;
  const openapi = () => {
    document ??= raw('/openapi.json').then(async (response) => (await response.json()) as OpenApi);
    return document;
  };
  const fits = conformance(openapi);
  const call: Client['call'] = async (path, init, clientAddress) => {
    const response = await raw(path, init, clientAddress);
    await fits(init?.method ?? 'GET', path, response.clone() as Response);
    return response;
  };
  return {
    call,
    document: openapi,
    post: (path, body, headers = {}) =>
      call(path, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        headers: { 'content-type': 'application/json', ...headers },
      }),
    async get(path) {
      const response = await call(path);
      const text = await response.text();
      const isJson = response.headers.get('content-type') === 'application/json';
      return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
    },
  };
}

const ajv = new Ajv2020({ strict: false, validateFormats: false });
/** By the schema's text: most applications of a test run have the same description. */
const compiled = new Map<string, ValidateFunction>();

/** The schema with the components that its references name. */
export const withComponents = (schema: object, { components }: Pick<OpenApi, 'components'>): object => ({
  ...schema,
  components,
});

function validatorOf(schema: object): ValidateFunction {
  const text = JSON.stringify(schema);
  const check = compiled.get(text) ?? ajv.compile(schema);
  compiled.set(text, check);
  return check;
}

/** What holds for every answer, and for one of a described operation: a described status, a body that fits. */
function conformance(openapi: () => Promise<OpenApi>) {
  return async (method: string, path: string, response: Response): Promise<void> => {
    assert.match(response.headers.get('x-request-id') ?? '', /^[A-Za-z0-9._-]{1,128}$/);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    const document = await openapi();
    const { paths } = document;
    const pathname = new URL(path, 'http://localhost').pathname;
    const template = Object.keys(paths).find((candidate) => matches(candidate, pathname));
    const operation = template === undefined ? undefined : paths[template]?.[method.toLowerCase()];
    if (operation === undefined) return;
    const described = operation.responses[response.status];
    assert.ok(described, `${method} ${template} answers ${response.status}, which is not described`);
    if (described.content === undefined) {
      assert.equal(
        await response.text(),
        '',
        `${method} ${template} ${response.status} is described as empty`,
      );
      return;
    }
    const type = (response.headers.get('content-type') ?? '').split(';')[0] ?? '';
    const schema = described.content[type]?.schema;
    assert.ok(schema, `${method} ${template} answers ${response.status} as ${type}, which is not described`);
    if (type !== 'application/json') return;
    const check = validatorOf(withComponents(schema, document));
    const body = await response.json();
    assert.ok(
      check(body),
      `${method} ${path} ${response.status}: ${ajv.errorsText(check.errors)} ${JSON.stringify(body)}`,
    );
  };
}

const matches = (template: string, path: string) =>
  new RegExp(`^${template.replace(/[.]/g, '\\.').replace(/\{[^}]+\}/g, '[^/]+')}$`).test(path);

export async function errorOf(response: Response) {
  const { error } = (await response.json()) as {
    error: { code: string; message: string; details?: unknown };
  };
  return { status: response.status, ...error };
}
