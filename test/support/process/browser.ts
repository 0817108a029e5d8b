// The machine's own Chromium, without a screen and without a network of its own: started through its debugging pipe,
// which works under both runtimes, with an empty profile, and surely ended.
import {
  type Browser,
  type BrowserContextOptions,
  type ConsoleMessage,
  chromium,
  type Page,
} from 'playwright-core';
import { chromiumPath } from '#test/support/chain/requirements.ts';
import { waitFor } from './service.ts';

export type Window = Pick<
  BrowserContextOptions,
  'colorScheme' | 'viewport' | 'javaScriptEnabled' | 'permissions'
>;

/** What a page said and asked for while it was open. */
export type Heard = {
  /** Console messages and script errors; a breach of the content security policy is one. */
  readonly said: string[];
  /** Addresses of every request. */
  readonly requests: string[];
};

export type OpenPage = { readonly page: Page; readonly heard: Heard; readonly status: number };

export type TestBrowser = {
  /** In a profile of its own. */
  open(url: string, window?: Window): Promise<OpenPage>;
  /** All windows and the process. */
  close(): Promise<void>;
};

/** Ends a hang: a slow machine alone does not reach it. */
const LIMIT_MS = 120_000;

/** The browser loads the icon when it likes, also after a test has cut the page off the network or has left it. */
const isIconCutOff = (message: ConsoleMessage) =>
  message.location().url.endsWith('/favicon.svg') &&
  /ERR_(INTERNET_DISCONNECTED|ABORTED|FAILED|NETWORK_CHANGED)/.test(message.text());

/** Resizes the page and waits until it has that size: Chromium may answer before the page does. */
export async function resize(page: Page, viewport: { readonly width: number; readonly height: number }) {
  await page.setViewportSize(viewport);
  await waitFor(
    'the size',
    async () => (await page.evaluate<number>('window.innerWidth')) === viewport.width,
  );
}

export async function startBrowser(): Promise<TestBrowser> {
  const browser: Browser = await chromium.launch({
    executablePath: chromiumPath() ?? '',
    headless: true,
    timeout: LIMIT_MS,
    args: [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ],
  });
  return {
    async open(url, window = {}) {
      const context = await browser.newContext(window);
      context.setDefaultTimeout(LIMIT_MS);
      const page = await context.newPage();
      const heard: Heard = { said: [], requests: [] };
      page.on('console', (message) => {
        if (!isIconCutOff(message)) heard.said.push(message.text());
      });
      page.on('pageerror', (error) => heard.said.push(String(error)));
      page.on('request', (request) => heard.requests.push(request.url()));
      const response = await page.goto(url);
      return { page, heard, status: response?.status() ?? 0 };
    },
    close: () => browser.close(),
  };
}
