import { Component, type ReactNode } from "react";
import { Mishap } from "./mishap";
import { MissingCode } from "./missing_code";

const UNFETCHED = /dynamically imported module|module script|preload/i;

/** A mistake of ours on one page leaves the rest standing, and so does code that could not be fetched. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    if (UNFETCHED.test(error.message)) return <MissingCode />;
    return (
      <Mishap title="This page crashed" detail={error.message}>
        This is a bug in the console. Your jobs and keys are not affected.
      </Mishap>
    );
  }
}
