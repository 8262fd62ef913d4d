import { render } from "preact";
import { App } from "./app";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shared.css";
import "./styles/parts.css";

render(<App />, document.getElementById("app")!);
