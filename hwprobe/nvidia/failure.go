package nvidia

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// failure is one way in which nvidia-smi fails.
type failure struct {
	code  hwprobe.WarningCode
	state hwprobe.State // of the cards that it is about
	next  string
}

var (
	mismatch   = failure{hwprobe.WarnDriverMismatch, hwprobe.StateDegraded, "the driver was upgraded under a running kernel: reboot, or unload and reload the nvidia kernel modules"}
	notLoaded  = failure{hwprobe.WarnDriverNotLoaded, hwprobe.StateDegraded, "load the driver (modprobe nvidia) or reinstall it for the running kernel, then see dmesg"}
	noLibrary  = failure{hwprobe.WarnDriverNotLoaded, hwprobe.StateDegraded, "install the driver's user libraries, or give the container the utility capability of the NVIDIA container toolkit"}
	notStarted = failure{hwprobe.WarnDriverNotLoaded, hwprobe.StateDegraded, "see dmesg: the driver is loaded but could not start the card"}
	blocked    = failure{hwprobe.WarnAccessLost, hwprobe.StateDegraded, "update Windows, WSL (wsl --update) and the Windows driver, run wsl --shutdown, and see that no card is in TCC mode (nvidia-smi -dm 0 on Windows); in a container, allow it the devices /dev/nvidia*"}
	cutOff     = failure{hwprobe.WarnAccessLost, hwprobe.StateDegraded, "the container lost its devices, as happens after systemctl daemon-reload: restart the container"}
	forbidden  = failure{hwprobe.WarnNoPermission, hwprobe.StateDegraded, "let this user open /dev/nvidia*, or run the container with access to the GPU"}
	lost       = failure{hwprobe.WarnDeviceLost, hwprobe.StateLost, "see dmesg for Xid errors, then reboot; if it happens again check power, cooling and the card's seat"}
	reset      = failure{hwprobe.WarnNeedsReset, hwprobe.StateDegraded, "stop what uses the card and run nvidia-smi --gpu-reset, or reboot; see dmesg for Xid errors"}
	noPower    = failure{hwprobe.WarnToolFailed, hwprobe.StateDegraded, "connect the card's power cables"}
	inforom    = failure{hwprobe.WarnToolFailed, hwprobe.StateDegraded, "the card's own configuration memory is damaged; it may work on, but have it replaced if it misbehaves"}
	stuck      = failure{hwprobe.WarnToolTimeout, hwprobe.StateDegraded, "see dmesg for Xid errors; a hanging nvidia-smi usually ends only with a reboot"}
	missing    = failure{hwprobe.WarnToolMissing, hwprobe.StateDegraded, "install NVIDIA's driver with nvidia-smi, or put nvidia-smi on this process's PATH"}
	unbound    = failure{hwprobe.WarnDriverNotLoaded, hwprobe.StateDegraded, "bind the card to NVIDIA's driver (lspci -k shows which driver has it)"}
	skipped    = failure{hwprobe.WarnToolFailed, hwprobe.StateDegraded, "see to the other card first: nvidia-smi gave up there"}
	other      = failure{hwprobe.WarnToolFailed, hwprobe.StateDegraded, "run nvidia-smi by hand on this machine and look at what it prints"}
)

// noDevices is what a driver without a card says.
const noDevices = "nodeviceswerefound"

// texts tell a failure, each squeezed (see squeeze); the first that matches is taken.
var texts = []struct {
	text string
	failure
}{
	{"driver/libraryversionmismatch", mismatch},
	{"couldn'tcommunicatewiththenvidiadriver", notLoaded},
	{"couldn'tfindlibnvidia-ml", noLibrary},
	{"couldn'tfindnvml.dll", noLibrary},
	{"drivernotloaded", notLoaded},
	{"gpuaccessblockedbytheoperatingsystem", blocked},
	{"failedtoinitializenvml:n/a", blocked}, // WSL#11755
	{"failedtoinitializenvml:unknownerror", cutOff},
	{"insufficientpermissions", forbidden},
	{"permissiontoaccessthedriver", forbidden},
	{"requiresreset", reset},
	{"gpuislost", lost},
	{"thedevicehandleforgpu", lost}, // "unable to determine" it, or to "detect" it (Easy-GPU-PV#276)
	{"inforomiscorrupted", inforom},
	{"powercables", noPower},
	{noDevices, notStarted},
}

// codes tell a failure by the exit code, where the text does not: nvidia-smi exits with NVML's error.
var codes = map[int]failure{4: forbidden, 8: noPower, 9: notLoaded, 10: stuck, 12: noLibrary, 14: inforom, 15: lost, 16: reset, 17: blocked, 18: mismatch}

// classify finds the failure that the text and the exit code tell; the last resort says only that the tool failed.
func classify(text string, code int) failure {
	squeezed := squeeze(text)
	for _, t := range texts {
		if strings.Contains(squeezed, t.text) {
			return t.failure
		}
	}
	if f, known := codes[code]; known {
		return f
	}
	return other
}

// classifyError says what an nvidia-smi that did not run to its end means.
func classifyError(err error) failure {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return missing
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, source.ErrStuck):
		return stuck
	}
	return other
}

var addressPattern = regexp.MustCompile(`[0-9a-fA-F]{3,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\b`)

// addresses returns the PCI addresses that a text names, each once. There may be no space before: "GPU0000:07:00.0"; a time
// of day, "11:59:44.226", is none.
func addresses(text string) []string {
	var found []string
	for _, match := range addressPattern.FindAllString(text, -1) {
		if address, ok := hwprobe.PCIAddress(match); ok && !slices.Contains(found, address) {
			found = append(found, address)
		}
	}
	return found
}

// addFailures adds the cards that nvidia-smi did not answer for, and what it said went wrong.
func (f *finder) addFailures(r reply, silent []card) {
	switch {
	case r.err != nil:
		cause := classifyError(r.err)
		f.addSilent(silent, cause, r.said)
		if cause != missing && len(silent) == 0 {
			said := ""
			if r.said != "" {
				said = "; it printed: " + excerpt(r.said)
			}
			f.found.Warn(cause.code, "", r.err.Error()+said, cause.next)
		}
	case r.code == 0 && len(r.rows) > 0 && r.said == "":
		f.addSilent(silent, unbound, "nvidia-smi does not list it")
	default:
		f.addSaid(r, silent)
	}
}

// addSaid adds a failure that nvidia-smi printed. It is about the cards whose addresses it names, else about all silent ones.
func (f *finder) addSaid(r reply, silent []card) {
	cause := classify(r.said, r.code)
	about := addresses(r.said)
	if len(about) == 0 {
		f.addSilent(silent, cause, r.said)
		switch {
		case len(silent) > 0, len(r.rows) == 0 && strings.Contains(squeeze(r.said), noDevices): // a driver without a card is no fault
		case len(r.rows) == 0 || r.code != 0:
			said := cmp.Or(excerpt(r.said), "it printed no device and no reason")
			f.found.Warn(cause.code, "", fmt.Sprintf("nvidia-smi ended with exit code %d: %s", r.code, said), cause.next)
		}
		return
	}
	for _, address := range about {
		silent = slices.DeleteFunc(silent, func(c card) bool { return c.pci == address })
		id := "gpu:" + address
		if f.has(id) { // it answers all the same, as a card with a damaged infoROM does
			f.found.Warn(cause.code, id, excerpt(r.said), cause.next)
			continue
		}
		f.addSilent([]card{{id: id, pci: address}}, cause, r.said)
	}
	f.addSilent(silent, skipped, r.said)
}

func (f *finder) addSilent(silent []card, cause failure, why string) {
	for _, c := range silent {
		said := "nvidia-smi does not answer for it"
		if why != "" {
			said += ": " + excerpt(why)
		}
		f.addUnread(c, cause.state, cause.code, said, cause.next)
	}
}

// excerpt is the beginning of a tool's text on one line.
func excerpt(text string) string {
	const most = 200
	words := []rune(strings.Join(strings.Fields(text), " "))
	if len(words) > most {
		return string(words[:most]) + "…"
	}
	return string(words)
}
