package ota

import (
	"fmt"

	"perch/health"
)

// Condition reports stopped rollouts and damaged images.
func (f *Firmware) Condition() health.Part { return condition(f.List()) }

func condition(images []Shown) health.Part {
	part := health.Part{Name: "firmware", OK: true}.Saying(fmt.Sprintf("%d images", len(images)))
	for _, i := range images {
		if i.Stopped != "" {
			part.OK = false
			part = part.Saying(
				fmt.Sprintf("the rollout of %s has stopped: %s; look at those robots, then set its rollout anew, or remove the image",
					i.Version, i.Stopped))
		}
		if i.Damaged != "" {
			part.OK = false
			part = part.Saying(fmt.Sprintf("the image %s is offered to no robot: %s", i.Version, i.Damaged))
		}
	}
	return part
}
