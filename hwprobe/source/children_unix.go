//go:build unix

package source

import (
	"os/exec"
	"syscall"
)

// withChildren gives a command a process group of its own, of which the end of its context is the end. What is returned ends it
// too: for children that keep the output open when the command itself has ended.
func withChildren(cmd *exec.Cmd) (end func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = func() error {
		if kill() != nil {
			return cmd.Process.Kill() // which knows whether it has ended
		}
		return nil
	}
	return func() { _ = kill() } // nobody of them may be left
}
