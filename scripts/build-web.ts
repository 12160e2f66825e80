import { bundleWeb } from "./lib/web-bundle.ts";

// Builds the page of `pi-rpcd web`, dist/web/. `npm run build` does it too.
await bundleWeb();
