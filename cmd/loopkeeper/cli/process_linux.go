package cli

import (
	"os/exec"
	"syscall"
)

// own puts a child into a group of its own, which Ctrl-C on the terminal does not reach, and ends it when we die.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
