import "./nonce";
import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "./look.css";
import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { createQueryClient } from "./api/queries";
import { App } from "./app";
import { nonce } from "./nonce";
import { resolver, theme } from "./theme";

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <MantineProvider
        theme={theme}
        cssVariablesResolver={resolver}
        defaultColorScheme="auto"
        getStyleNonce={() => nonce}
      >
        <Notifications position="bottom-right" limit={4} containerWidth={360} />
        <QueryClientProvider client={createQueryClient()}>
          <Router base="/console">
            <App />
          </Router>
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}
