package nvidia

import (
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
)

func TestXMLMemoryIsTheCardsNotTheBARsNorAnInstances(t *testing.T) {
	for file, want := range map[string][2]uint64{ // MiB
		"nvidia-xml-a10g-515.xml":         {23028, 22569}, // its BAR is 32768
		"nvidia-xml-a100-mig-535.xml":     {81920, 80999}, // an instance comes before it in the document
		"nvidia-xml-a100-40g-mig-510.xml": {40960, 40315},
		"nvidia-xml-rtx3060-570.xml":      {12288, 11806}, // with used and reserved it is 12290
		"nvidia-xml-rtx3080-595.xml":      {10240, 660},   // cc_protected_memory_usage is 0
	} {
		gpus := parseXML([]byte(fixture.Text(t, file)))
		if len(gpus) != 1 {
			t.Fatalf("%s: %d devices", file, len(gpus))
		}
		total, free := gpus[0].memory()
		if total != hwprobe.Known(want[0]<<20) || free != hwprobe.Known(want[1]<<20) {
			t.Errorf("%s: total %v, free %v; want %v MiB", file, total, free, want)
		}
	}
}

func TestXMLPowerOfEveryVersion(t *testing.T) {
	for file, want := range map[string]hwprobe.Number{
		"nvidia-xml-quadro-p400-418.xml":        {},                    // v9: N/A
		"nvidia-xml-tesla-t4-515.xml":           hwprobe.Known(26.78),  // v11: power_readings
		"nvidia-xml-rtx3090-525.xml":            hwprobe.Known(27.23),  // v12, still power_readings
		"nvidia-xml-a100-mig-535.xml":           hwprobe.Known(67.03),  // v12: gpu_power_readings, beside the module's N/A
		"nvidia-xml-rtx3060-570.xml":            hwprobe.Known(11.60),  // v12: average_power_draw
		"nvidia-xml-rtx3080-595.xml":            hwprobe.Known(139.62), // v13
		"nvidia-xml-rtxpro6000-580-partial.xml": hwprobe.Known(66.84),  // only instant_power_draw is set
		"nvidia-xml-gtx1070ti-minimal.xml":      {},
	} {
		if got := parseXML([]byte(fixture.Text(t, file)))[0].number("power.draw", 0, 1e6); got != want {
			t.Errorf("%s: power %v, want %v", file, got, want)
		}
	}
}

func TestXMLPaddedValuesAndMissingElements(t *testing.T) {
	f := find(t, pc(smi{xml: fixture.Text(t, "nvidia-xml-rtxpro6000-580-partial.xml")}, nil))
	d := f.Devices[0]
	if d.Temperature != hwprobe.Known(37.0) || d.Utilisation != (hwprobe.Number{}) || d.PCI != "0000:01:00.0" || d.Integrated != hwprobe.Known(false) {
		t.Errorf("%+v", d)
	}
	checkPools(t, f, "gpu:0000:01:00.0 ? ?")
}

func TestXMLCutShortKeepsTheDevicesBefore(t *testing.T) {
	whole := fixture.Text(t, "nvidia-xml-tesla-t4-515.xml")
	gpuAt, end := strings.Index(whole, "<gpu "), strings.Index(whole, "</nvidia_smi_log>")
	for name, broken := range map[string]string{
		"in the second device": whole[:end] + whole[gpuAt:gpuAt+2000],
		"markup that is none":  whole[:end] + "<gpu id=\"0\"><a></b>",
		"two documents":        whole[:end] + "<<<",
	} {
		if gpus := parseXML([]byte(broken)); len(gpus) != 1 || gpus[0].text("name") != "Tesla T4" {
			t.Errorf("%s: %+v", name, gpus)
		}
	}
}

func TestXMLHostileSizes(t *testing.T) {
	for _, total := range []string{"99999999999999999999 MiB", "17592186044424 MiB", "-5 MiB", "1e9 MiB", "8192 GiB", "0 MiB", "0x10 MiB", "8,192 MiB"} {
		x := `<nvidia_smi_log><gpu id="00000000:01:00.0"><uuid>GPU-1</uuid><fb_memory_usage><total>` + total + `</total><free>1 MiB</free></fb_memory_usage></gpu></nvidia_smi_log>`
		checkPools(t, find(t, pc(smi{xml: x}, nil)), "gpu:0000:01:00.0 ? ?")
	}
	if gpus := parseXML([]byte(strings.Repeat("<gpu>", 200000))); len(gpus) != 0 { // as deep as a megabyte can be
		t.Errorf("%d devices", len(gpus))
	}
}

func TestXMLTellsAllWhereTheCSVIsNotUnderstood(t *testing.T) {
	m := smi{xml: fixture.Text(t, "nvidia-xml-rtx3080-595.xml"), csv: "Option --query-gpu is not recognized. Please run 'nvidia-smi -h'.\n", code: 2}
	f := find(t, pc(m, nil))
	if len(f.Devices) != 1 || f.Devices[0].Driver != "595.58.03" || f.Devices[0].Utilisation != hwprobe.Known(65.0) {
		t.Errorf("%+v", f)
	}
	checkPools(t, f, "gpu:0000:0c:00.0 10240 660")
}

func TestXMLGivesTheMemoryThatTheCSVDoesNot(t *testing.T) {
	two := strings.Replace(fixture.Text(t, "nvidia-xml-tesla-t4-515.xml"), "</nvidia_smi_log>", `<gpu id="00000000:05:00.0"><uuid>GPU-5</uuid>`+
		`<fb_memory_usage><total>8192 MiB</total><free>8000 MiB</free></fb_memory_usage></gpu></nvidia_smi_log>`, 1)
	m := smi{xml: two, csv: header + // the other way round than in the XML: paired by address, not by place
		csvRow("GPU-5", "Tesla P4", "00000000:05:00.0", "[Unknown Error]", "[Unknown Error]", "[N/A]", "None", "6.1") +
		csvRow("GPU-6", "Tesla T4", "00000000:00:1E.0", "[Unknown Error]", "[Unknown Error]", "[N/A]", "None", "7.5")}
	checkPools(t, find(t, pc(m, nil)), "gpu:0000:05:00.0 8192 8000", "gpu:0000:00:1e.0 15360 13939")
}
