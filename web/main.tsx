import { render } from "preact";
import { SignIn, thisBrowser } from "./sign-in.ts";
import { connectHere, isServedHere, PageApp } from "./state/app.ts";
import { browserPage } from "./state/page.ts";
import { ConsolePage } from "./views/page.tsx";

const app = new PageApp({
  page: browserPage,
  signIn: new SignIn(thisBrowser()),
  connect: connectHere,
  isServed: isServedHere,
});
void app.start();
render(<ConsolePage app={app} />, document.body);
