// What src/adapters/runtime/serve.ts uses of Bun, for `deno check`: bun-types and Deno's own types declare the same globals.
declare const Bun: {
  gc(isSync: boolean): void;
  serve(options: {
    readonly hostname: string;
    readonly port: number;
    readonly idleTimeout: number;
    readonly development: boolean;
    readonly reusePort: boolean;
    readonly maxRequestBodySize: number;
    readonly fetch: (
      request: Request,
      server: { requestIP(request: Request): { readonly address: string } | null },
    ) => Promise<Response>;
  }): { readonly port: number | undefined; stop(closeActive: boolean): Promise<void> };
};
