package perception

import "testing"

func TestMoodDisplay(t *testing.T) {
	act(t, []string{"mood", "gesture", "sound"}, []scene{
		{name: "face, glow and head, and all is as before", script: "2s glad 0.8; 4s glad 0; 9s .",
			want: "2s face happy; 2s lights 56 48 0; 2s head 8 15; 4s face neutral; 4s lights 0 0 0; 4s head 0 15"},
		{name: "as it fades, a little at a time", script: "2s glad 0.8; 2.1s glad 0.75; 2.5s glad 0.6; 9s .",
			want: "2s face happy; 2s lights 56 48 0; 2s head 8 15; 3s lights 42 36 0"},
		{name: "nothing is worn for nothing", script: "2s glad 0; 9s .", want: ""},
		{name: "not in a turn, but after it", script: "0s heard Hi; 2s glad 0.8; 4s ends; 9s .",
			want: "5s face happy; 5s lights 56 48 0; 5s head 8 15"},
		{name: "not in the quiet hours", begin: "23:00", tune: nightly, script: "2s glad 0.8; 9s .", want: ""},
		{name: "and dark as they begin", begin: "21:59", tune: nightly, script: "58s glad 0.8; 62s glad 0.7; 90s .",
			want: "58s face happy; 58s lights 56 48 0; 58s head 8 15; 1m2s lights 0 0 0"},
		{name: "not asleep", script: "0s goodnight; 2s glad 0.8; 9s .", want: ""},
		{name: "not by a robot that is away", script: "0s offline; 2s glad 0.8; 9s .", want: ""},
		{name: "lights that somebody has lit are theirs", script: "1s lights; 2s glad 0.8; 9s .", want: "2s face happy; 2s head 8 15"},
		{name: "so is a head", script: "1s moves; 2s glad 0.8; 30s glad 0.4; 40s .",
			want: "2s face happy; 2s lights 56 48 0; 11s find; 30s lights 28 24 0"},
		{name: "so is a face", script: "1s shows sad; 2s glad 0.8; 9s .", want: "2s lights 56 48 0; 2s head 8 15"},
		{name: "its own face is no other's", script: "2s glad 0.8; 2s shows happy; 4s glad 0; 9s .",
			want: "2s face happy; 2s lights 56 48 0; 2s head 8 15; 4s face neutral; 4s lights 0 0 0; 4s head 0 15"},
		{name: "a head that a behaviour has turned stays there", script: `1s head_turn {"yaw":45,"pitch":20,"by":"wake_word"}; 2s glad 0.8; 9s .`,
			want: "2s face happy; 2s lights 56 48 0; 2s head 53 20"},
		{name: "a gesture comes first, and the mood is worn after it", script: "2s glad 0.8; 3s gesture nod; 9s .",
			want: "2s face happy; 2s lights 56 48 0; 2s head 8 15; 3s head 0 30; 3.3s head 0 8; 3.6s head 0 28; 3.9s head 0 8; " +
				"4.2s head 0 15; 4.2s face happy; 4.2s lights 56 48 0"},
		{name: "an expression lies over it, and fades", script: "2s glad 0.8; 4s seems sad; 20s .",
			want: "2s face happy; 2s lights 56 48 0; 2s head 8 15; 4s face sad; 12s face happy"},
		{name: "another machine with the robot's address changes nothing", script: "2s glad 0.8; 3s claimed; 4s glad 0; 9s .",
			want: "2s face happy; 2s lights 56 48 0; 2s head 8 15; 4s face neutral; 4s lights 0 0 0; 4s head 0 15"},
		{name: "and needs none", script: "2s seems focused; 20s .", want: "2s face thinking; 10s face neutral"},
	})
}
