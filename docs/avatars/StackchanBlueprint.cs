// Makes a blueprint in Warudo that receives what Perch tells: one node "On WebSocket Action" for each action.
// Copy this file into the folder Playground of Warudo's data folder (Menu, Open Data Folder), add the asset
// "Stack-chan" to your scene, and click "Make Blueprint". The blueprint needs neither the asset nor this file
// afterwards.

using Warudo.Core;
using Warudo.Core.Attributes;
using Warudo.Core.Graphs;
using Warudo.Core.Scenes;
using Warudo.Plugins.Core.Nodes.External;

[AssetType(Id = "2eb73d76-ae64-4f30-8121-627d81621b74", Title = "Stack-chan")]
public class StackchanBlueprintAsset : Asset {

    [Trigger]
    public void MakeBlueprint() {
        var graph = new Graph {
            Name = "Stack-chan",
            Enabled = true
        };
        Receive(graph, "stackchan.state", WebSocketActionDataType.String);
        Receive(graph, "stackchan.emotion", WebSocketActionDataType.String);
        Receive(graph, "stackchan.gesture", WebSocketActionDataType.String);
        Receive(graph, "stackchan.mood", WebSocketActionDataType.String);
        Receive(graph, "stackchan.say", WebSocketActionDataType.String);
        Receive(graph, "stackchan.notify", WebSocketActionDataType.String);
        Receive(graph, "stackchan.mouth", WebSocketActionDataType.Float);
        Context.OpenedScene.AddGraph(graph);
        Context.Service.BroadcastOpenedScene();
    }

    private static void Receive(Graph graph, string action, WebSocketActionDataType type) {
        var node = graph.AddNode<OnWebSocketActionNode>();
        node.Action = action;
        node.DataType = type;
    }

    protected override void OnCreate() {
        base.OnCreate();
        SetActive(true);
    }

}
