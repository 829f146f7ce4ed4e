package nvidia

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

const a100XML = "nvidia-xml-a100-40g-mig-510.xml"

// a100 is what a driver prints of the A100 of the XML fixture: the sum of its parts.
func a100(total, free string) string {
	return header + csvRow("GPU-00000001-aaaa-4bbb-8ccc-000000000001", "NVIDIA A100-SXM4-40GB", "00000000:00:04.0", total, free, "Enabled", "None", "8.0")
}

func TestMIGInstancesAreDevicesWithTheirOwnPoolsAndTheCardIsNone(t *testing.T) {
	f := find(t, pc(smi{csv: a100("40960 MiB", "40315 MiB"), xml: fixture.Text(t, a100XML)}, nil))
	checkPools(t, f, "gpu:0000:00:04.0/mig1.0 19968 19948", "gpu:0000:00:04.0/mig2.0 19968 19948")
	for _, d := range f.Devices {
		if d.State != hwprobe.StateOK || d.PCI != "0000:00:04.0" || d.Partition == "" || d.Integrated != hwprobe.Known(false) ||
			d.Power != (hwprobe.Number{}) || d.Utilisation != (hwprobe.Number{}) || d.Temperature != hwprobe.Known(41.0) {
			t.Errorf("%+v", d)
		}
	}
	if len(f.Devices) != 2 || len(f.Warnings) != 0 {
		t.Errorf("%+v", f)
	}
}

func TestMIGInAContainerWithoutRightsReadsTheInstances(t *testing.T) {
	for name, csv := range map[string]string{
		"MIG mode is told":     a100("[Insufficient Permissions]", "[Insufficient Permissions]"),
		"MIG mode is not told": strings.Replace(a100("[Insufficient Permissions]", "[Insufficient Permissions]"), "Enabled", "[N/A]", 1),
	} {
		f := find(t, pc(smi{csv: csv, xml: fixture.Text(t, a100XML)}, nil))
		t.Log(name)
		checkPools(t, f, "gpu:0000:00:04.0/mig1.0 19968 19948", "gpu:0000:00:04.0/mig2.0 19968 19948")
	}
}

func TestForbiddenMemoryIsUnknownWhereTheXMLHasNone(t *testing.T) {
	f := find(t, pc(smi{csv: fixture.Text(t, "nvidia-smi-mig-container.query.csv")}, nil))
	if d := f.Devices[0]; d.State != hwprobe.StateDegraded || !slices.Equal(warned(f), []hwprobe.WarningCode{hwprobe.WarnNoPermission}) {
		t.Errorf("%+v", f)
	}
	checkPools(t, f, f.Devices[0].ID+" ? ?")
}

func TestMIGInstancesHaveTheirNamesFromTheList(t *testing.T) {
	list := strings.ReplaceAll(fixture.Text(t, "nvidia-smi-h100-mig-linux-590.L-version.txt"), "GPU-00000000-0000-0000-0000-000000000000", "GPU-00000001-aaaa-4bbb-8ccc-000000000001")
	f := find(t, pc(smi{csv: a100("40960 MiB", "40315 MiB"), xml: fixture.Text(t, a100XML), list: list}, nil))
	var got []string
	for _, d := range f.Devices {
		got = append(got, d.ID+" "+d.Partition+" "+d.UUID)
	}
	want := []string{
		"gpu:0000:00:04.0/mig1.0 3g.40gb MIG-00000000-0000-0000-0000-000000000000",
		"gpu:0000:00:04.0/mig2.0 2g.20gb MIG-00000001-0000-0000-0000-000000000001",
		"gpu:MIG-00000002-0000-0000-0000-000000000002 1g.10gb MIG-00000002-0000-0000-0000-000000000002", // the list alone has it
		"gpu:MIG-00000003-0000-0000-0000-000000000003 1g.10gb MIG-00000003-0000-0000-0000-000000000003",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestMIGNamesOfAnotherCardAreNotTaken(t *testing.T) {
	list := fixture.Text(t, "nvidia-smi-h100-mig-linux-590.L-version.txt") // of GPU-00000000…
	f := find(t, pc(smi{csv: a100("40960 MiB", "40315 MiB"), xml: fixture.Text(t, a100XML), list: list}, nil))
	if len(f.Devices) != 2 || f.Devices[0].UUID != "" {
		t.Errorf("%+v", f.Devices)
	}
}

func TestMIGNamesOfOldDrivers(t *testing.T) { // 450 to 460 (nvitop#8 shows the form)
	got := parseList("GPU 0: A100-SXM4-40GB (UUID: GPU-1)\n  MIG 1g.5gb Device 0: (UUID: MIG-GPU-1/7/0)\n  MIG 1c.3g.20gb Device 1: (UUID: MIG-GPU-1/2/0)\n")
	want := []listed{{"GPU-1", "0", "MIG-GPU-1/7/0", "1g.5gb"}, {"GPU-1", "1", "MIG-GPU-1/2/0", "1c.3g.20gb"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestComputeInstancesOfOneGPUInstanceAreNotCountedTwice(t *testing.T) {
	x := strings.Replace(fixture.Text(t, a100XML), "<gpu_instance_id>2<", "<gpu_instance_id>1<", 1)
	at := strings.LastIndex(x, "<compute_instance_id>0<")
	x = x[:at] + strings.Replace(x[at:], ">0<", ">1<", 1)
	checkPools(t, find(t, pc(smi{csv: a100("40960 MiB", "40315 MiB"), xml: x}, nil)), "gpu:0000:00:04.0/mig1.0 19968 19948")
}

func TestASplitCardWithoutInstancesIsNotOfferedAsWhole(t *testing.T) {
	xml := fixture.Text(t, a100XML)
	for name, c := range map[string]struct {
		smi
		state hwprobe.State
	}{
		"no instance was made":   {smi{csv: a100("40960 MiB", "40315 MiB"), xml: strings.ReplaceAll(xml, "mig_device>", "other>")}, hwprobe.StateUnsupported},
		"the XML cannot be read": {smi{csv: fixture.Text(t, "nvidia-smi-h100-mig-linux-590.query-idle.csv")}, hwprobe.StateDegraded},
		"the XML is cut short":   {smi{csv: a100("40960 MiB", "40315 MiB"), xml: xml[:strings.Index(xml, "<mig_devices>")]}, hwprobe.StateDegraded},
	} {
		f := find(t, pc(c.smi, nil))
		if len(f.Devices) != 1 || f.Devices[0].State != c.state || !slices.Equal(warned(f), []hwprobe.WarningCode{hwprobe.WarnPartitioned}) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestMIGIsSeenByDriversThatDoNotKnowTheAddressingMode(t *testing.T) { // 450 to 529: asked for everything, they answer nothing
	csv := "uuid, name, pci.bus_id, driver_version, memory.total [MiB], memory.free [MiB], utilization.gpu [%], temperature.gpu, power.draw [W], mig.mode.current\n" +
		"GPU-00000001-aaaa-4bbb-8ccc-000000000001, NVIDIA A100-SXM4-40GB, 00000000:00:04.0, 510.47.03, 40960 MiB, 40315 MiB, [N/A], 36, 66.92 W, Enabled\n"
	f := find(t, pc(smi{csv: csv, unknown: "addressing_mode,compute_cap", xml: fixture.Text(t, a100XML)}, nil))
	checkPools(t, f, "gpu:0000:00:04.0/mig1.0 19968 19948", "gpu:0000:00:04.0/mig2.0 19968 19948")
}

// Instances that were there a moment ago are not gone: the failure is of the tool, and the card is no device to place on.
func TestASplitCardWhoseInstancesAreNotReadInTimeIsDegraded(t *testing.T) {
	f := find(t, pc(cutXML{smi{csv: a100("40960 MiB", "40315 MiB")}}, nil))
	if len(f.Devices) != 1 || f.Devices[0].State != hwprobe.StateDegraded || !f.Failed() ||
		!slices.Equal(warned(f), []hwprobe.WarningCode{hwprobe.WarnToolTimeout, hwprobe.WarnPartitioned}) {
		t.Errorf("%+v", f)
	}
}

// cutXML is an nvidia-smi that answers CSV queries and hangs at others.
type cutXML struct{ smi }

func (c cutXML) Run(ctx context.Context, name string, args ...string) (source.Output, error) {
	if slices.Contains(args, "-x") {
		return source.Output{Stdout: []byte("<nvidia_smi_log><gpu id=\"00000000:00:04.0\"><mig_dev")}, context.DeadlineExceeded
	}
	return c.smi.Run(ctx, name, args...)
}
