package serve

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// change is something that happened to the hardware, in words.
func change(c hwprobe.Change) *workerv1.Change {
	return &workerv1.Change{Time: timestamppb.Now(), Kind: string(c.Kind), Device: c.Device, Text: changeText(c)}
}

func changeText(c hwprobe.Change) string {
	switch c.Kind {
	case hwprobe.Resumed:
		return fmt.Sprintf("the machine runs again after a suspension of %s", c.To)
	case hwprobe.DeviceAdded:
		return fmt.Sprintf("%s is there, %s", c.Device, c.To)
	case hwprobe.DeviceRemoved:
		return fmt.Sprintf("%s is no longer in the report", c.Device)
	case hwprobe.DriverChanged:
		return fmt.Sprintf("the driver of %s is %s, it was %s", c.Device, c.To, c.From)
	case hwprobe.PoolTotalChanged:
		return fmt.Sprintf("the pool %s has %s, it had %s", c.Pool, gib(c.To), gib(c.From))
	case hwprobe.WarningAppeared:
		return c.Warning.Message
	case hwprobe.WarningGone:
		return "no longer: " + c.Warning.Message
	}
	return fmt.Sprintf("%s is %s, it was %s", c.Device, c.To, c.From)
}

// gib is a number of bytes in words; a number that is unknown stays so.
func gib(bytes string) string {
	n, err := strconv.ParseUint(bytes, 10, 64)
	if err != nil {
		return bytes + " memory"
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
