import { render } from "preact";
import { App } from "./app";
import { showHidden } from "./lib/text";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shared.css";
import "./styles/parts.css";

showHidden();
render(<App />, document.getElementById("app")!);
