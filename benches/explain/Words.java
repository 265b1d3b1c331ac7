import java.io.FileInputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** Counts the words of a file, and says where its time went: {@code java Words FILE}; output as that of known.c. */
final class Words {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private static double queued(RandomAccessFile schedstat) throws IOException {
        byte[] line = new byte[128];
        schedstat.seek(0);
        int got = schedstat.read(line);
        return Double.parseDouble(new String(line, 0, got, StandardCharsets.US_ASCII).split("\\s+")[1]) / 1e9;
    }

    /** CPU time, wall time and time in the queue of one moment: again when the thread was taken off its CPU meanwhile. */
    private static double[] moment(RandomAccessFile schedstat) throws IOException {
        while (true) {
            double queue = queued(schedstat);
            double[] here = {THREADS.getCurrentThreadCpuTime() / 1e9, System.nanoTime() / 1e9, queue};
            if (queued(schedstat) <= queue) {
                return here;
            }
        }
    }

    public static void main(String[] arguments) throws IOException {
        long begun = System.nanoTime();
        Map<String, Integer> counts = new HashMap<>();
        double cpu = 0, wall = 0, queue = 0;
        long words = 0;
        try (FileInputStream file = new FileInputStream(arguments[0]);
                RandomAccessFile schedstat = new RandomAccessFile("/proc/thread-self/schedstat", "r")) {
            byte[] block = new byte[1 << 16];
            int kept = 0;
            while (true) {
                double[] from = moment(schedstat);
                int got = file.read(block, kept, block.length - kept);
                double[] until = moment(schedstat);
                cpu += until[0] - from[0];
                wall += until[1] - from[1];
                queue += until[2] - from[2];
                if (got <= 0) {
                    break;
                }
                int begin = 0;
                for (int at = 0; at < kept + got; at++) {
                    if (block[at] == ' ') {
                        counts.merge(new String(block, begin, at - begin, StandardCharsets.ISO_8859_1), 1, Integer::sum);
                        words++;
                        begin = at + 1;
                    }
                }
                kept = kept + got - begin;
                System.arraycopy(block, begin, block, 0, kept);
            }
        }
        System.out.printf(
                "{\"total\": %.6f, \"parts\": {\"read\": {\"cpu\": %.6f, \"wait\": %.6f, \"queue\": %.6f}}, \"words\": %d}%n",
                (System.nanoTime() - begun) / 1e9, cpu, wall - cpu - queue, queue, words);
    }
}
