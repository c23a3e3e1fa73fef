// A window of Swing with live, dead, disabled, slow and re-created buttons; it logs each event it handles.
// Run by `java SwingRig.java LOG`. Commands come on stdin: tick, animate, still, recreate, read.

import java.awt.Component;
import java.io.BufferedReader;
import java.io.FileWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.LocalTime;
import java.util.function.Consumer;
import javax.swing.*;

public class SwingRig {
    static String path;
    static JPanel panel = new JPanel(null);
    static JLabel shown = new JLabel("Count: 0"), clock = new JLabel("--:--:--");
    static JProgressBar bar = new JProgressBar();
    static JTextField line = new JTextField();
    static JButton fresh;
    static int count = 0;
    static Timer ticker = new Timer(1000, e -> clock.setText(LocalTime.now().withNano(0).toString()));
    static Timer mover = new Timer(60, e -> bar.setValue((bar.getValue() + 3) % 100));

    static void log(String text) {
        try (FileWriter out = new FileWriter(path, StandardCharsets.UTF_8, true)) {
            out.write(text + "\n");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    static void live(String name) {
        log(name);
        shown.setText("Count: " + ++count);
    }

    static void slow(String name) {
        try {
            Thread.sleep(1500);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
        live(name);
    }

    static <T extends Component> T put(T one, int x, int y, int width, int height) {
        one.setBounds(x, y, width, height);
        panel.add(one);
        return one;
    }

    static JButton button(String name, int place, Consumer<String> act) {
        JButton one = put(new JButton(name), 10 + 140 * (place % 2), 10 + 60 * (place / 2), 120, 40);
        if (act != null) one.addActionListener(e -> act.accept(name));
        panel.repaint();
        return one;
    }

    static void command(String word) {
        switch (word) {
            case "tick" -> ticker.start();
            case "animate" -> mover.start();
            case "still" -> { ticker.stop(); mover.stop(); }
            case "recreate" -> { panel.remove(fresh); fresh = button("Fresh", 8, SwingRig::live); }
            case "clear" -> line.setText("");
            case "read" -> log("line=" + line.getText());
            default -> { }
        }
        if (!word.equals("read")) log("did " + word);
    }

    static void show() {
        JFrame frame = new JFrame("swing rig");
        put(shown, 300, 10, 180, 20);
        put(clock, 300, 40, 180, 20);
        put(bar, 300, 70, 180, 20);
        int place = 0;
        for (String name : new String[] {"Alpha", "Beta", "Gamma", "Delta"}) button(name, place++, SwingRig::live);
        button("Quiet", 4, SwingRig::log);
        button("Dead", 5, null);
        button("Slow", 6, SwingRig::slow);
        button("Off", 7, SwingRig::live).setEnabled(false);
        fresh = button("Fresh", 8, SwingRig::live);
        for (int number = 1; number <= 3; number++) {
            String name = "Check " + number;
            JCheckBox check = put(new JCheckBox(name), 300, 75 + 35 * number, 180, 30);
            check.addActionListener(e -> log(name + (check.isSelected() ? " on" : " off")));
        }
        put(line, 300, 230, 180, 34);
        frame.setContentPane(panel);
        frame.setBounds(60, 60, 520, 420);
        frame.setVisible(true);
    }

    public static void main(String[] args) throws Exception {
        path = args[0];
        SwingUtilities.invokeAndWait(SwingRig::show);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String word = in.readLine(); word != null; word = in.readLine()) {
            String said = word.strip();
            SwingUtilities.invokeLater(() -> command(said));
        }
    }
}
