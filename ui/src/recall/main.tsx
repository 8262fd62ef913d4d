import { render } from "preact";
import "../styles/tokens.css";
import "../styles/base.css";
import "../styles/shared.css";
import "./view.css";
import { RecallView } from "./view";

render(<RecallView />, document.getElementById("app")!);
