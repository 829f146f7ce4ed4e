package cli

import (
	"os/exec"
	"syscall"
)

// own puts a child into a group of its own, which Ctrl-C in the console does not reach.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminate ends a child: Windows has no signal that it could act on.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
