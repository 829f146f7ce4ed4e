//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// terminate asks a child's whole group to end; an error means that it has ended already.
func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// kill ends a child's whole group.
func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
